import type { ComponentChildren } from 'preact';
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
import { Attempt } from '../webhooks/deliveries.js';

type Hook = ApiSchemas['Hook'];
type Schedule = ApiSchemas['Schedule'];
type HookPath = Address<'/api/projects/{projectId}/hooks/{event}'>;
type CallsPath = Address<
  '/api/projects/{projectId}/hooks/{event}/calls' | '/api/projects/{projectId}/schedules/{name}/calls'
>;
type SchedulePath = Address<'/api/projects/{projectId}/schedules/{name}'>;

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
          { name: 'Timeout', kind: 'number', show: ({ timeoutMs }) => `${timeoutMs} ms` },
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

/** A hook: its calls, and one more with a document that is not stored. */
function OneHook({ base, hook, onClose }: { base: HookPath; hook: Hook; onClose: () => void }) {
  const [text, setText] = useState('{}');
  const path = below(base, '/test');
  return (
    <Handler
      title={hook.event}
      base={base}
      call={prepare('POST', path, { body: {} })}
      send={() => call('POST', path, { body: { document: JSON.parse(text) as Record<string, unknown> } })}
      action="Call it once"
      input={<TextArea label="Test document" rows={4} value={text} onChange={setText} />}
      onClose={onClose}
    >
      <p>
        Calls {targetOf(hook)}. When that fails, the event is{' '}
        {hook.onFailure === 'refuse' ? 'refused' : 'allowed, and logged'}.
      </p>
    </Handler>
  );
}

/** A schedule: its runs, and one more now. */
function OneSchedule({ base, schedule, onClose }: { base: SchedulePath; schedule: Schedule; onClose: () => void }) {
  const path = below(base, '/run');
  return (
    <Handler
      title={schedule.name}
      base={base}
      call={prepare('POST', path)}
      send={() => call('POST', path)}
      action="Run now"
      onClose={onClose}
    >
      <p>
        Calls {targetOf(schedule)} at {schedule.cron} ({schedule.timeZone}).{' '}
        {schedule.missed === 'once' ? 'One late run makes up for those that were missed.' : 'Missed runs are left out.'}
      </p>
      {schedule.lastError !== null && <p class="bad">{schedule.lastError}</p>}
    </Handler>
  );
}

/** What calls own code: when, one call more now, whose answer a note shows, and the log of calls. */
function Handler({
  title,
  base,
  call: request,
  send,
  action,
  input,
  onClose,
  children,
}: {
  title: string;
  base: HookPath | SchedulePath;
  /** The request, as it is shown. */
  call: Prepared;
  send: () => Promise<{ answer: unknown; error: string | null }>;
  action: string;
  input?: ComponentChildren;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const tryOut = (): Promise<void> =>
    attempt(async () => {
      const { answer, error } = await send();
      invalidate(request.path);
      return error ?? `Answered: ${JSON.stringify(answer)}`;
    });
  return (
    <Drawer title={title} onClose={onClose}>
      {children}
      {mayChange.value && (
        <Form onSubmit={() => void tryOut()}>
          {input}
          <p>
            <button>{action}</button>
          </p>
        </Form>
      )}
      <CallLog path={below(base, '/calls')} />
      <Commands of={mayChange.value ? [request] : []} />
    </Drawer>
  );
}

/** Calls are logged a moment after their answer. */
const CALLS_MS = 2_000;

/** The last calls, and what the project's files have printed last. */
function CallLog({ path }: { path: CallsPath }) {
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
                , <Attempt of={each} />
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
  ['url', 'A URL'],
  ['run', 'A file of the project'],
] as const;

interface Target {
  place: 'url' | 'run';
  url: string;
  run: string;
}

interface Closing {
  onClose: () => void;
  /** Shows the secret that signs the calls of an address, once. */
  onSecret: (secret: string) => void;
}

/** Adds what calls own code: `body` without the handler, whose fields stand between the first ones and the last. */
function NewHandler<Body extends object>({
  what,
  body,
  isDirty,
  mayGo,
  add,
  first,
  last,
  onClose,
  onSecret,
}: {
  what: string;
  body: Body;
  isDirty: boolean;
  mayGo: boolean;
  add: (body: Body & ({ url: string } | { run: string })) => Prepared<{ secret: string | null }>;
  first: ComponentChildren;
  last: ComponentChildren;
} & Closing) {
  const form = useForm<Target>({ place: 'url', url: '', run: '' });
  const { place, url, run } = form.values;
  return (
    <DrawerForm
      title={`Add a ${what}`}
      action={`Add the ${what}`}
      requests={[add({ ...body, ...(place === 'url' ? { url: url.trim() } : { run: run.trim() }) })]}
      done={`The ${what} is added`}
      isDirty={isDirty || form.isDirty}
      mayGo={mayGo && form.values[place] !== ''}
      onDone={({ secret }) => {
        if (secret !== null) onSecret(secret);
        onClose();
      }}
      onClose={onClose}
    >
      {first}
      <Choice label="Handler" choices={PLACES} {...form.at('place')} />
      {place === 'url' ? (
        <Field label="URL" type="url" required placeholder="https://shop.example/hooks" {...form.at('url')} />
      ) : (
        <Field
          label="File"
          required
          placeholder="orders.mjs"
          hint="In the folder that bsvc.yaml names; with #name for another handler than the event’s."
          {...form.at('run')}
        />
      )}
      {last}
    </DrawerForm>
  );
}

function NewHook({ base, ...closing }: { base: Address<'/api/projects/{projectId}/hooks'> } & Closing) {
  const form = useForm<Pick<Hook, 'event' | 'onFailure'>>({ event: '', onFailure: 'refuse' });
  const { event, onFailure } = form.values;
  return (
    <NewHandler
      what="hook"
      body={{ event: event.trim(), onFailure }}
      isDirty={form.isDirty}
      mayGo={event !== ''}
      add={(body) => prepare('POST', base, { body })}
      first={
        <Field
          label="Event"
          required
          placeholder="orders.create"
          hint="<collection>.create, .update or .delete; users.signup, users.login or users.deliver."
          {...form.at('event')}
        />
      }
      last={<Choice label="When the handler fails" choices={ON_FAILURE} {...form.at('onFailure')} />}
      {...closing}
    />
  );
}

const ON_FAILURE = [
  ['refuse', 'Refuse'],
  ['allow', 'Go on without it'],
] as const;
const MISSED = [
  ['once', 'One late run'],
  ['skip', 'Left out'],
] as const;

function NewSchedule({ base, ...closing }: { base: Address<'/api/projects/{projectId}/schedules'> } & Closing) {
  const form = useForm<Pick<Schedule, 'name' | 'cron' | 'timeZone' | 'missed'>>({
    ...{ name: '', cron: '', timeZone: 'UTC', missed: 'once' },
  });
  const { name, cron, timeZone, missed } = form.values;
  return (
    <NewHandler
      what="schedule"
      body={{ name: name.trim(), cron: cron.trim(), timeZone: timeZone.trim(), missed }}
      isDirty={form.isDirty}
      mayGo={name !== '' && cron !== ''}
      add={(body) => prepare('POST', base, { body })}
      first={
        <>
          <Field label="Name" required placeholder="nightly" {...form.at('name')} />
          <Field
            label="Cron expression"
            required
            placeholder="0 3 * * *"
            hint="Minute, hour, day, month, weekday."
            {...form.at('cron')}
          />
          <Field label="Time zone" required placeholder="Europe/Berlin" {...form.at('timeZone')} />
        </>
      }
      last={<Choice label="Missed runs" choices={MISSED} {...form.at('missed')} />}
      {...closing}
    />
  );
}
