import { useState } from 'preact/hooks';
import { api, queryOf } from '../../api.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { attempt, Dialog, Trouble } from '../../parts/basics.js';
import { type CommandLine, Commands, ofProject, quote } from '../../parts/commands.js';
import { Confirm, Secret } from '../../parts/confirm.js';
import { Filters, Pager } from '../../parts/filters.js';
import { List } from '../../parts/table.js';
import { goTo, linkHere, linkTo, place } from '../../routes.js';
import { mayChange } from '../../session.js';

interface Webhook {
  id: string;
  url: string;
  events: string[];
  enabled: boolean;
  disabledReason: string | null;
  failingSince: string | null;
}

interface Delivery {
  id: string;
  webhookId: string;
  event: string;
  state: 'pending' | 'delivered' | 'failed';
  documentId: string | null;
  createdAt: string;
  attempts: { at: string; durationMs: number; status: number | null; response: string; error: string | null }[];
  /** Null when it is no longer kept; not in lists. */
  body?: string | null;
}

export function Webhooks() {
  const { parts } = place.value;
  const base = `/api/projects/${parts[1] ?? ''}/webhooks`;
  const list = useLoad<{ items: Webhook[] }>(base);
  const { data, reload } = list;
  const chosen = parts[3];
  const webhook = data?.items.find(({ id }) => id === chosen);
  return (
    <>
      <h1>Webhooks</h1>
      <List
        label="Webhooks"
        of={list}
        keyOf={({ id }) => id}
        empty="No webhooks. “bsvc webhook add” registers one."
        columns={[
          {
            name: 'Address',
            show: ({ id, url }) => (
              <a
                class="opens"
                href={linkTo(['p', parts[1] ?? '', 'webhooks', id])}
                {...(id === chosen && { 'aria-current': 'true' as const })}
              >
                {url}
              </a>
            ),
          },
          { name: 'Events', show: ({ events }) => events.join(', ') },
          { name: 'State', show: (each) => <State {...each} /> },
        ]}
      />
      <Commands cli={`bsvc webhook list ${ofProject()}`} path={base} />
      {data && chosen !== undefined && !webhook && <p class="empty">This webhook is gone.</p>}
      {webhook && <OneWebhook key={webhook.id} base={`${base}/${webhook.id}`} webhook={webhook} onChange={reload} />}
    </>
  );
}

function State({ enabled, disabledReason, failingSince }: Webhook) {
  if (!enabled) return <span class={disabledReason === 'requested' ? 'muted' : 'bad'}>disabled: {disabledReason}</span>;
  return failingSince ? (
    <span class="bad">failing since {moment(failingSince)}</span>
  ) : (
    <span class="good">active</span>
  );
}

interface Deliveries {
  items: Delivery[];
  next: string | null;
}

/** Of one click: each is a request. */
const MAX_REPLAYED = 500;

const STATES = ['pending', 'delivered', 'failed'].map((state) => [state, state] as const);

function OneWebhook({ base, webhook, onChange }: { base: string; webhook: Webhook; onChange: () => void }) {
  const { query } = place.value;
  const state = query.get('state') ?? '';
  const path = `${base}/deliveries${queryOf({ state, before: query.get('before') })}`;
  const list = useLoad<Deliveries>(path);
  const { data, reload } = list;
  const counts = useLoad<Record<Delivery['state'], number>>(`${base}/counts`);
  const [secret, setSecret] = useState<string | null>(null);
  const [isRotating, setRotating] = useState(false);
  const [busy, setBusy] = useState(false);
  const run = async (work: () => Promise<string>): Promise<void> => {
    setBusy(true);
    await attempt(async () => {
      const text = await work();
      reload();
      counts.reload();
      onChange();
      return text;
    });
    setBusy(false);
  };
  const replayFailed = async (): Promise<string> => {
    const failed: string[] = [];
    let before: string | null = null;
    do {
      const listed: Deliveries = await api('GET', `${base}/deliveries${queryOf({ state: 'failed', before })}`);
      failed.push(...listed.items.map(({ id }) => id));
      before = listed.next;
    } while (before !== null && failed.length < MAX_REPLAYED);
    for (const id of failed.slice(0, MAX_REPLAYED)) await api('POST', `${base}/deliveries/${id}/replay`);
    const more = before === null ? '' : `, the newest ${MAX_REPLAYED} of more`;
    return `${Math.min(failed.length, MAX_REPLAYED)} deliveries are tried again${more}`;
  };
  const hasFailed = (counts.data?.failed ?? 0) > 0 || data?.items.some((each) => each.state === 'failed') === true;
  const cli = (words: string, more = ''): string => `bsvc webhook ${words} ${webhook.id} ${ofProject()}${more}`;
  const switched = webhook.enabled ? 'disable' : 'enable';
  const actions: CommandLine[] = [
    { name: 'Send a test', cli: cli('test'), method: 'POST', path: `${base}/test` },
    {
      name: webhook.enabled ? 'Disable' : 'Enable',
      cli: cli('edit', ` --${switched}`),
      method: 'PATCH',
      path: base,
      body: { enabled: !webhook.enabled },
    },
    { name: 'New secret', cli: cli('rotate-secret'), method: 'POST', path: `${base}/rotate-secret` },
  ];
  return (
    <section aria-labelledby="deliveries">
      <h2 id="deliveries">Deliveries to {new URL(webhook.url).host}</h2>
      {counts.data && (
        <p>
          Last 24 hours: <span class="good">{counts.data.delivered} delivered</span>,{' '}
          <span class={counts.data.failed > 0 ? 'bad' : ''}>{counts.data.failed} failed</span>, {counts.data.pending}{' '}
          waiting
        </p>
      )}
      {mayChange.value && (
        <p class="row">
          <button
            disabled={busy}
            onClick={() =>
              void run(async () =>
                (await api<Delivery>('POST', `${base}/test`)).state === 'delivered'
                  ? 'The test event was delivered'
                  : 'The test event was not delivered',
              )
            }
          >
            Send a test
          </button>
          <button
            disabled={busy}
            onClick={() =>
              void run(async () => {
                await api('PATCH', base, { enabled: !webhook.enabled });
                return webhook.enabled ? 'The webhook is disabled' : 'The webhook is enabled';
              })
            }
          >
            {webhook.enabled ? 'Disable' : 'Enable'}
          </button>
          {hasFailed && (
            <button disabled={busy} onClick={() => void run(replayFailed)}>
              Try all failed again
            </button>
          )}
          <button disabled={busy} onClick={() => setRotating(true)}>
            New secret…
          </button>
        </p>
      )}
      <Filters fields={[{ name: 'state', label: 'State', choices: STATES }]} />
      <List
        label="Deliveries"
        of={list}
        keyOf={({ id }) => id}
        empty="No deliveries."
        columns={[
          {
            name: 'Event',
            show: ({ id, event }) => (
              <a class="opens" href={linkHere({ open: id })}>
                {event}
              </a>
            ),
          },
          {
            name: 'State',
            show: (each) => (
              <span class={each.state === 'failed' ? 'bad' : each.state === 'delivered' ? 'good' : ''}>
                {each.state}
              </span>
            ),
          },
          { name: 'Attempts', isNumber: true, show: ({ attempts }) => attempts.length },
          { name: 'Last answer', show: ({ attempts }) => attempts.at(-1)?.error ?? attempts.at(-1)?.status ?? '' },
          { name: 'At', show: ({ createdAt }) => moment(createdAt) },
        ]}
      />
      <Pager before={data?.next ?? null} />
      <Commands
        cli={`bsvc webhook deliveries ${webhook.id} ${ofProject()}${state && ` --state ${state}`}`}
        path={path}
        more={mayChange.value ? actions : []}
      />
      {query.get('open') && (
        <OneDelivery
          base={base}
          id={query.get('open')!}
          webhook={webhook.id}
          onReplay={(id) =>
            run(async () => {
              await api('POST', `${base}/deliveries/${id}/replay`);
              return 'The delivery is tried again';
            })
          }
        />
      )}
      {isRotating && (
        <Confirm
          title="Make a new secret"
          text="Deliveries are signed with it from now on; the old secret counts for 24 hours more."
          asksPassword
          action="Make a new secret"
          onClose={() => setRotating(false)}
          onConfirm={async () => {
            setSecret((await api<{ secret: string }>('POST', `${base}/rotate-secret`)).secret);
            setRotating(false);
          }}
        />
      )}
      {secret !== null && <Secret what="Secret" value={secret} onClose={() => setSecret(null)} />}
    </section>
  );
}

function OneDelivery({
  base,
  id,
  webhook,
  onReplay,
}: {
  base: string;
  id: string;
  webhook: string;
  onReplay: (id: string) => Promise<void>;
}) {
  const path = `${base}/deliveries/${id}`;
  const { data, error, reload } = useLoad<Delivery>(path);
  return (
    <Dialog
      title={data ? `${data.event}: ${data.state}` : 'Delivery'}
      onClose={() => goTo(linkHere({ open: null }))}
      wide
    >
      <Trouble error={error} onRetry={reload} />
      {data && (
        <>
          {mayChange.value && data.body !== null && (
            <p>
              <button onClick={() => void onReplay(id).then(reload)}>Try again</button>
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
            <p class="empty">What was sent is no longer kept.</p>
          ) : (
            <pre tabIndex={0}>{indent(data.body ?? '')}</pre>
          )}
        </>
      )}
      <Commands
        cli={`bsvc webhook replay ${webhook} ${quote(id)} ${ofProject()}`}
        method="POST"
        path={`${path}/replay`}
      />
    </Dialog>
  );
}

function indent(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
