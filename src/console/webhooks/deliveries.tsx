import { prepare } from '../api.js';
import { below, withQuery, type Address } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { moment } from '../format.js';
import { invalidate, useLoad } from '../load.js';
import { act, ErrorNote } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { CrudScreen, opens } from '../parts/crud-screen.js';
import { Drawer } from '../parts/drawer.js';
import { chosenOf, goTo, linkHere, place } from '../routes.js';
import { mayChange } from '../session.js';
import { requestsOf, WebhookActions, type WebhookPath } from './webhook-actions.js';

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
          { name: 'Attempts', isNumber: true, show: ({ attempts }) => attempts.length },
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
                {moment(attempt.at)}, {attempt.durationMs} ms: {attempt.error ?? `answered ${String(attempt.status)}`}
                {attempt.response !== '' && <pre tabIndex={0}>{attempt.response}</pre>}
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

function indent(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
