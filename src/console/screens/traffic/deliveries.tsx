import { api, queryOf } from '../../api.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { attempt } from '../../parts/basics.js';
import { Commands, ofProject } from '../../parts/commands.js';
import { Filters, Pager } from '../../parts/filters.js';
import { List } from '../../parts/table.js';
import { linkHere, place } from '../../routes.js';
import { mayChange } from '../../session.js';
import { DeliveryDrawer } from './delivery-drawer.js';
import type { Deliveries, Delivery, Webhook } from './webhook.js';
import { commandsOf, WebhookActions } from './webhook-actions.js';

const STATES = ['pending', 'delivered', 'failed'].map((state) => [state, state] as const);

/** A webhook’s deliveries, and what can be done with it. */
export function OneWebhook({ base, webhook, onChange }: { base: string; webhook: Webhook; onChange: () => void }) {
  const { query } = place.value;
  const state = query.get('state') ?? '';
  const path = `${base}/deliveries${queryOf({ state, before: query.get('before') })}`;
  const list = useLoad<Deliveries>(path);
  const { data, reload } = list;
  const counts = useLoad<Record<Delivery['state'], number>>(`${base}/counts`);
  const renew = (): void => {
    reload();
    counts.reload();
    onChange();
  };
  const hasFailed = (counts.data?.failed ?? 0) > 0 || data?.items.some((each) => each.state === 'failed') === true;
  return (
    <section aria-labelledby="deliveries">
      <h2 id="deliveries">Deliveries to {new URL(webhook.url).host}</h2>
      {counts.data && <Counts of={counts.data} />}
      {mayChange.value && (
        <WebhookActions
          base={base}
          webhook={webhook}
          waiting={counts.data?.pending ?? 0}
          hasFailed={hasFailed}
          onChange={renew}
        />
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
        more={mayChange.value ? commandsOf(base, webhook) : []}
      />
      {query.get('open') && (
        <DeliveryDrawer
          base={base}
          id={query.get('open')!}
          webhook={webhook.id}
          onReplay={(id) =>
            attempt(async () => {
              await api('POST', `${base}/deliveries/${id}/replay`);
              renew();
              return 'The delivery is tried again';
            })
          }
        />
      )}
    </section>
  );
}

function Counts({ of: { delivered, failed, pending } }: { of: Record<Delivery['state'], number> }) {
  return (
    <p>
      Last 24 hours: <span class="good">{delivered} delivered</span>,{' '}
      <span class={failed > 0 ? 'bad' : ''}>{failed} failed</span>, {pending} waiting
    </p>
  );
}
