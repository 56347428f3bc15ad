import { prepare, call, type Prepared } from '../api.js';
import { below, withQuery, type Address, type DataOf } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { moment, number } from '../format.js';
import { readJson } from '../json.js';
import { invalidate, useLoad } from '../load.js';
import { act, ErrorNote, attempt } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { CrudScreen, opens } from '../parts/crud-screen.js';
import { Drawer } from '../parts/drawer.js';
import { chosenOf, goTo, linkHere, place, linkTo } from '../routes.js';
import { mayChange } from '../session.js';
import { useState } from 'preact/hooks';
import { Confirm, Secret } from '../parts/confirm.js';
import { Tick } from '../parts/form.js';

const STATES = (['pending', 'delivered', 'failed'] as const).map((state) => [state, state] as const);
const toneOf = (state: string): string => (state === 'failed' ? 'bad' : state === 'delivered' ? 'good' : '');

/** A webhook’s deliveries, and what can be done with it. */
export function OneWebhook({ base, webhook }: { base: WebhookPath; webhook: ApiSchemas['Webhook'] }) {
  const { query } = place.value;
  const state = chosenOf('state', STATES) ?? '';
  const list = useLoad(withQuery(below(base, '/deliveries'), { state, before: query.get('before') }));
  const { data } = list;
  const { data: counts } = useLoad(below(base, '/counts'));
  const hasFailed = (counts?.failed ?? 0) > 0 || data?.items.some((each) => each.state === 'failed') === true;
  const open = query.get('open');
  return (
    <section>
      <CrudScreen
        title={`Deliveries to ${new URL(webhook.url).host || webhook.url}`}
        isSection
        label="Deliveries"
        filters={[{ name: 'state', label: 'State', choices: STATES }]}
        list={list}
        before={data?.next ?? null}
        more={requestsOf(base, webhook)}
        keyOf={({ id }) => id}
        empty="No deliveries."
        columns={[
          { name: 'Event', show: ({ id, event }) => opens(id, event) },
          { name: 'State', show: (each) => <span class={toneOf(each.state)}>{each.state}</span> },
          { name: 'Attempts', kind: 'number', show: ({ attempts }) => attempts.length },
          { name: 'Last answer', show: ({ attempts }) => attempts.at(-1)?.error ?? attempts.at(-1)?.status ?? '' },
          { name: 'At', show: ({ createdAt }) => moment(createdAt) },
        ]}
      >
        {counts && (
          <p>
            Last 24 hours: <span class="good">{counts.delivered} delivered</span>,{' '}
            <span class={counts.failed > 0 ? 'bad' : ''}>{counts.failed} failed</span>, {counts.pending} waiting
          </p>
        )}
        {mayChange.value && (
          <WebhookActions base={base} webhook={webhook} waiting={counts?.pending ?? 0} hasFailed={hasFailed} />
        )}
      </CrudScreen>
      {open && (
        <DeliveryDrawer
          path={below(base, '/deliveries/{deliveryId}', { deliveryId: open })}
          onReplayed={() => invalidate(below(base, '/counts'))}
        />
      )}
    </section>
  );
}

/** One delivery: what was sent, and what each attempt was answered. */
function DeliveryDrawer({
  path,
  onReplayed,
}: {
  path: Address<'/api/projects/{projectId}/webhooks/{id}/deliveries/{deliveryId}'>;
  onReplayed: () => void;
}) {
  const { data, error, reload } = useLoad(path);
  const replay = prepare('POST', below(path, '/replay'));
  return (
    <Drawer title={data ? `${data.event}: ${data.state}` : 'Delivery'} onClose={() => goTo(linkHere({ open: null }))}>
      <ErrorNote error={error} onRetry={reload} />
      {data && (
        <>
          {mayChange.value && data.body !== null && (
            <p>
              <button onClick={() => void act(replay, 'The delivery is tried again').then(onReplayed)}>
                Try again
              </button>
            </p>
          )}
          <h3>Attempts</h3>
          {data.attempts.length === 0 && <p>None yet.</p>}
          <ol>
            {data.attempts.map((attempt) => (
              <li key={attempt.at}>
                {moment(attempt.at)}, <Attempt of={attempt} />
              </li>
            ))}
          </ol>
          <h3>Sent</h3>
          {data.body === null ? (
            <p class="empty">The payload is no longer stored.</p>
          ) : (
            <pre tabIndex={0}>{indent(data.body)}</pre>
          )}
        </>
      )}
      <Commands of={[replay]} />
    </Drawer>
  );
}

/** What an attempt came to, with the beginning of the answer. */
export function Attempt({
  of: { durationMs, error, status, response },
}: {
  of: ApiSchemas['Delivery']['attempts'][number];
}) {
  return (
    <>
      {durationMs} ms: {error ?? `answered ${String(status)}`}
      {response !== '' && <pre tabIndex={0}>{response}</pre>}
    </>
  );
}

function indent(json: string): string {
  const { value, problem } = readJson(json);
  return problem === null ? JSON.stringify(value, null, 2) : json;
}

type WebhookPath = Address<'/api/projects/{projectId}/webhooks/{id}'>;
type Deliveries = DataOf<'GET', '/api/projects/{projectId}/webhooks/{id}/deliveries'>;

/** Of one click: each is a request. */
const MAX_REPLAYED = 500;

/** Tries the newest failed deliveries again, one by one; says how many. */
async function replayFailed(base: WebhookPath): Promise<string> {
  const deliveries = below(base, '/deliveries');
  const failed: string[] = [];
  let before: string | null = null;
  do {
    const listed: Deliveries = await call('GET', deliveries, { query: { state: 'failed', before } });
    failed.push(...listed.items.map(({ id }) => id));
    before = listed.next;
  } while (before !== null && failed.length < MAX_REPLAYED);
  for (const deliveryId of failed.slice(0, MAX_REPLAYED)) {
    await call('POST', below(deliveries, '/{deliveryId}/replay', { deliveryId }));
  }
  const { length } = failed.slice(0, MAX_REPLAYED);
  const more = before === null ? '' : `, the newest ${MAX_REPLAYED} of more`;
  return `${length === 1 ? '1 delivery is' : `${length} deliveries are`} tried again${more}`;
}

type Asked = 'secret' | 'disable' | 'remove';

/** What can be done with a webhook. */
function WebhookActions({
  base,
  webhook: { enabled, url },
  waiting,
  hasFailed,
}: {
  base: WebhookPath;
  webhook: ApiSchemas['Webhook'];
  /** Deliveries that have not been answered yet. */
  waiting: number;
  hasFailed: boolean;
}) {
  const [secret, setSecret] = useState<string | null>(null);
  const [asked, ask] = useState<Asked | null>(null);
  const [keeps, setKeeps] = useState(false);
  const [busy, setBusy] = useState(false);
  const close = (): void => ask(null);
  const run = async (work: () => Promise<string>): Promise<void> => {
    setBusy(true);
    await attempt(async () => {
      const text = await work();
      invalidate(below(base, '/counts'));
      return text;
    });
    setBusy(false);
  };
  const test = async (): Promise<string> =>
    (await call('POST', below(base, '/test'))).state === 'delivered'
      ? 'The test event was delivered'
      : 'The test event was not delivered';
  const enable = async (wanted: boolean): Promise<string> => {
    await call('PATCH', base, { body: { enabled: wanted } });
    return wanted ? 'The webhook is enabled' : 'The webhook is disabled';
  };
  const mayDisableAtOnce = enabled && waiting === 0;
  const those = waiting === 1 ? '1 waiting delivery' : `${number(waiting)} waiting deliveries`;
  return (
    <div class="row">
      <button disabled={busy} onClick={() => void run(test)}>
        Send a test
      </button>
      <a class="button" href={linkHere({ edit: '1' })}>
        Edit…
      </a>
      <button
        disabled={busy}
        onClick={() => (mayDisableAtOnce || !enabled ? void run(() => enable(!enabled)) : ask('disable'))}
      >
        {!enabled ? 'Enable' : mayDisableAtOnce ? 'Disable' : 'Disable…'}
      </button>
      {hasFailed && (
        <button disabled={busy} onClick={() => void run(() => replayFailed(base))}>
          Try all failed again
        </button>
      )}
      <button disabled={busy} onClick={() => ask('secret')}>
        New secret…
      </button>
      <button class="danger" disabled={busy} onClick={() => ask('remove')}>
        Remove…
      </button>
      {asked === 'disable' && (
        <Confirm
          title="Disable the webhook"
          text={`${those} will count as failed, unless kept: then they go out when it is enabled, within 30 days.`}
          request={prepare('PATCH', base, { body: { enabled: false, waiting: keeps ? 'keep' : 'drop' } })}
          done="The webhook is disabled"
          onClose={close}
          onDone={() => invalidate(below(base, '/counts'))}
        >
          <Tick label="Keep pending deliveries" value={keeps} onChange={setKeeps} />
        </Confirm>
      )}
      {asked === 'remove' && (
        <Confirm
          title="Remove the webhook"
          text="This permanently deletes the webhook and its deliveries."
          name={new URL(url).host}
          request={prepare('DELETE', base)}
          onClose={close}
          onDone={() => goTo(linkTo(['p', place.value.parts[1] ?? '', 'webhooks']))}
        />
      )}
      {asked === 'secret' && (
        <Confirm
          title="Make a new secret"
          text="New deliveries are signed with it. The old secret stays valid for 24 hours."
          asksPassword
          request={prepare('POST', below(base, '/rotate-secret'))}
          onClose={close}
          onDone={(made) => setSecret(made.secret)}
        />
      )}
      {secret !== null && <Secret what="Secret" value={secret} onClose={() => setSecret(null)} />}
    </div>
  );
}

const requestsOf = (base: WebhookPath, { enabled }: ApiSchemas['Webhook']): Prepared[] => [
  prepare('POST', below(base, '/test')),
  prepare('PATCH', base, { body: { enabled: !enabled } }),
  prepare('POST', below(base, '/rotate-secret')),
  prepare('DELETE', base),
];
