import { useState } from 'preact/hooks';
import { call, prepare, type Prepared } from '../api.js';
import { below, type Address } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { moment } from '../format.js';
import { invalidate, useLoad } from '../load.js';
import { attempt, ErrorNote } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Secret } from '../parts/confirm.js';
import { CrudScreen, opens } from '../parts/crud-screen.js';
import { Drawer, DrawerForm } from '../parts/drawer.js';
import { Choice, Field, Form, TextArea, useForm } from '../parts/form.js';
import { Empty } from '../parts/page-head.js';
import { mayChange, projectPath } from '../session.js';

type Hook = ApiSchemas['Hook'];
type Schedule = ApiSchemas['Schedule'];
type Calls =
  | Address<'/api/projects/{projectId}/hooks/{event}/calls'>
  | Address<'/api/projects/{projectId}/schedules/{name}/calls'>;

const targetOf = ({ url, run }: { url: string | null; run: string | null }): string => run ?? url ?? '';

/** Hooks and schedules of a project: what calls its own code, and what the calls came to. */
export function OwnCode() {
  const project = projectPath();
  const hooks = below(project, '/hooks');
  const schedules = below(project, '/schedules');
  const hookList = useLoad(hooks);
  const scheduleList = useLoad(schedules);
  const [secret, setSecret] = useState<string | null>(null);
  const showHook = (hook: Hook, close: () => void) => (
    <OneHook base={below(hooks, '/{event}', { event: hook.event })} hook={hook} onClose={close} />
  );
  const showSchedule = (schedule: Schedule, close: () => void) => (
    <OneSchedule base={below(schedules, '/{name}', { name: schedule.name })} schedule={schedule} onClose={close} />
  );
  return (
    <>
      <CrudScreen
        title="Own code"
        label="Hooks"
        count={hookList.data?.items.length}
        list={hookList}
        opened="hook"
        add="Add a hook"
        keyOf={({ event }) => event}
        empty={
          <Empty title="No hooks yet">
            <p>With one, your code is asked before something happens: it may refuse it, or set fields of it.</p>
          </Empty>
        }
        columns={[
          { name: 'Event', show: ({ event }) => opens(event, event, 'hook') },
          { name: 'Handler', show: targetOf },
          { name: 'On failure', show: ({ onFailure }) => onFailure },
          { name: 'Timeout', isNumber: true, show: ({ timeoutMs }) => `${timeoutMs} ms` },
        ]}
        form={(hook, close) =>
          hook ? showHook(hook, close) : <NewHook base={hooks} onClose={close} onSecret={setSecret} />
        }
        view={showHook}
        remove={({ event }) => ({
          title: 'Remove the hook',
          label: `Remove the hook of ${event}`,
          text: 'This permanently deletes the hook and its log.',
          name: event,
          request: prepare('DELETE', below(hooks, '/{event}', { event })),
          done: 'The hook is removed',
        })}
      />
      <section>
        <CrudScreen
          title="Schedules"
          isSection
          list={scheduleList}
          opened="schedule"
          add="Add a schedule"
          keyOf={({ name }) => name}
          empty="No schedules."
          columns={[
            { name: 'Name', show: ({ name }) => opens(name, name, 'schedule') },
            { name: 'When', show: ({ cron, timeZone }) => `${cron} (${timeZone})` },
            { name: 'Handler', show: targetOf },
            { name: 'Next', show: ({ nextAt }) => (nextAt === null ? 'never' : moment(nextAt)) },
            { name: 'Last', show: (each) => <LastRun {...each} /> },
          ]}
          form={(schedule, close) =>
            schedule ? (
              showSchedule(schedule, close)
            ) : (
              <NewSchedule base={schedules} onClose={close} onSecret={setSecret} />
            )
          }
          view={showSchedule}
          remove={({ name }) => ({
            title: 'Remove the schedule',
            label: `Remove the schedule ${name}`,
            text: 'This permanently deletes the schedule and its log. A running call may still finish.',
            name,
            request: prepare('DELETE', below(schedules, '/{name}', { name })),
            done: 'The schedule is removed',
          })}
        />
      </section>
      {secret !== null && <Secret what="Secret" value={secret} onClose={() => setSecret(null)} />}
    </>
  );
}

function LastRun({ lastAt, lastError }: Schedule) {
  if (lastAt === null) return <span class="muted">not yet</span>;
  return lastError === null ? <span>{moment(lastAt)}</span> : <span class="bad">failed {moment(lastAt)}</span>;
}

/** Says in a note what own code has answered. */
async function tryOut(
  request: Prepared<{ answer: unknown; error: string | null }>,
  send: () => Promise<{ answer: unknown; error: string | null }>,
): Promise<void> {
  await attempt(async () => {
    const { answer, error } = await send();
    invalidate(request.path);
    return error ?? `Answered: ${JSON.stringify(answer)}`;
  });
}

/** A hook: its calls, and one more with a document that is not stored. */
function OneHook({
  base,
  hook,
  onClose,
}: {
  base: Address<'/api/projects/{projectId}/hooks/{event}'>;
  hook: Hook;
  onClose: () => void;
}) {
  const [text, setText] = useState('{}');
  const test = below(base, '/test');
  const request = prepare('POST', test, { body: {} });
  const send = () => call('POST', test, { body: { document: JSON.parse(text) as Record<string, unknown> } });
  return (
    <Drawer title={hook.event} onClose={onClose}>
      <p>
        Calls {targetOf(hook)}. When that fails, the event is{' '}
        {hook.onFailure === 'refuse' ? 'refused' : 'allowed, and logged'}.
      </p>
      {mayChange.value && (
        <Form onSubmit={() => void tryOut(request, send)}>
          <TextArea label="Test document" rows={4} value={text} onChange={setText} />
          <p>
            <button>Call it once</button>
          </p>
        </Form>
      )}
      <CallLog path={below(base, '/calls')} />
      <Commands of={mayChange.value ? [request] : []} />
    </Drawer>
  );
}

/** A schedule: its runs, and one more now. */
function OneSchedule({
  base,
  schedule,
  onClose,
}: {
  base: Address<'/api/projects/{projectId}/schedules/{name}'>;
  schedule: Schedule;
  onClose: () => void;
}) {
  const run = below(base, '/run');
  const request = prepare('POST', run);
  return (
    <Drawer title={schedule.name} onClose={onClose}>
      <p>
        Calls {targetOf(schedule)} at {schedule.cron} ({schedule.timeZone}).{' '}
        {schedule.missed === 'once' ? 'One late run makes up for those that were missed.' : 'Missed runs are left out.'}
      </p>
      {schedule.lastError !== null && <p class="bad">{schedule.lastError}</p>}
      {mayChange.value && (
        <p>
          <button onClick={() => void tryOut(request, () => call('POST', run))}>Run now</button>
        </p>
      )}
      <CallLog path={below(base, '/calls')} />
      <Commands of={mayChange.value ? [request] : []} />
    </Drawer>
  );
}

/** Calls are logged a moment after their answer. */
const CALLS_MS = 2_000;

/** The last calls, and what the project's files have printed last. */
function CallLog({ path }: { path: Calls }) {
  const { data, error, reload } = useLoad(path, CALLS_MS);
  return (
    <>
      <ErrorNote error={error} onRetry={reload} />
      <h3>Last calls</h3>
      {data?.items.length === 0 && <p class="empty">None in the last day.</p>}
      <ol>
        {data?.items.map(({ id, createdAt, attempts }) => (
          <li key={id}>
            {moment(createdAt)}
            {attempts.map((each) => (
              <>
                , {each.durationMs} ms: {each.error ?? `answered ${String(each.status)}`}
                {each.response !== '' && <pre tabIndex={0}>{each.response}</pre>}
              </>
            ))}
          </li>
        ))}
      </ol>
      {data && data.lines.length > 0 && (
        <>
          <h3>Last lines of the project’s files</h3>
          <pre tabIndex={0}>{data.lines.join('\n')}</pre>
        </>
      )}
    </>
  );
}

const PLACES = [
  ['url', 'An address'],
  ['run', 'A file of the project'],
] as const;

interface Target {
  place: 'url' | 'run';
  url: string;
  run: string;
}
const NO_TARGET: Target = { place: 'url', url: '', run: '' };
const sentTarget = ({ place, url, run }: Target) => (place === 'url' ? { url: url.trim() } : { run: run.trim() });

function TargetFields({ form }: { form: Pick<ReturnType<typeof useForm<Target>>, 'values' | 'at'> }) {
  return (
    <>
      <Choice label="Handler" choices={PLACES} {...form.at('place')} />
      {form.values.place === 'url' ? (
        <Field
          label="Address"
          type="url"
          required
          autocomplete="off"
          placeholder="https://shop.example/hooks"
          {...form.at('url')}
        />
      ) : (
        <Field
          label="File"
          required
          autocomplete="off"
          placeholder="orders.mjs"
          hint="In the folder that bsvc.yaml names; with #name for another handler than the event’s."
          {...form.at('run')}
        />
      )}
    </>
  );
}

interface Closing {
  onClose: () => void;
  onSecret: (secret: string) => void;
}

/** Shows the secret that signs the calls of an address, once. */
const closeWith =
  ({ onClose, onSecret }: Closing) =>
  ({ secret }: { secret: string | null }): void => {
    if (secret !== null) onSecret(secret);
    onClose();
  };

function NewHook({ base, ...closing }: { base: Address<'/api/projects/{projectId}/hooks'> } & Closing) {
  const form = useForm<Pick<Hook, 'event' | 'onFailure'> & Target>({ event: '', onFailure: 'refuse', ...NO_TARGET });
  const { event, onFailure } = form.values;
  const body = { event: event.trim(), onFailure, ...sentTarget(form.values) };
  return (
    <DrawerForm
      title="Add a hook"
      action="Add the hook"
      requests={[prepare('POST', base, { body })]}
      done="The hook is added"
      isDirty={form.isDirty}
      mayGo={event !== '' && form.values[form.values.place] !== ''}
      onDone={closeWith(closing)}
      onClose={closing.onClose}
    >
      <Field
        label="Event"
        required
        autocomplete="off"
        placeholder="orders.create"
        hint="<collection>.create, .update or .delete; users.signup, users.login or users.deliver."
        {...form.at('event')}
      />
      <TargetFields form={form} />
      <Choice
        label="When the handler fails"
        choices={[
          ['refuse', 'Refuse'],
          ['allow', 'Go on without it'],
        ]}
        {...form.at('onFailure')}
      />
    </DrawerForm>
  );
}

function NewSchedule({ base, ...closing }: { base: Address<'/api/projects/{projectId}/schedules'> } & Closing) {
  const form = useForm<Pick<Schedule, 'name' | 'cron' | 'timeZone' | 'missed'> & Target>({
    ...{ name: '', cron: '', timeZone: 'UTC', missed: 'once', ...NO_TARGET },
  });
  const { name, cron, timeZone, missed } = form.values;
  const body = {
    ...{ name: name.trim(), cron: cron.trim(), timeZone: timeZone.trim(), missed },
    ...sentTarget(form.values),
  };
  return (
    <DrawerForm
      title="Add a schedule"
      action="Add the schedule"
      requests={[prepare('POST', base, { body })]}
      done="The schedule is added"
      isDirty={form.isDirty}
      mayGo={name !== '' && cron !== '' && form.values[form.values.place] !== ''}
      onDone={closeWith(closing)}
      onClose={closing.onClose}
    >
      <Field label="Name" required autocomplete="off" placeholder="nightly" {...form.at('name')} />
      <Field
        label="Cron expression"
        required
        autocomplete="off"
        placeholder="0 3 * * *"
        hint="Minute, hour, day, month, weekday."
        {...form.at('cron')}
      />
      <Field label="Time zone" required autocomplete="off" placeholder="Europe/Berlin" {...form.at('timeZone')} />
      <TargetFields form={form} />
      <Choice
        label="Missed runs"
        choices={[
          ['once', 'One late run'],
          ['skip', 'Left out'],
        ]}
        {...form.at('missed')}
      />
    </DrawerForm>
  );
}
