import { call } from '../../api.js';
import { below, withQuery, type Address, type DataOf } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { attempt } from '../../parts/basics.js';
import { Commands, ofProject } from '../../parts/commands.js';
import { Filters, Pager } from '../../parts/filters.js';
import { List } from '../../parts/table.js';
import { chosenOf, linkHere, place } from '../../routes.js';
import { mayChange } from '../../session.js';
import { DeliveryDrawer } from './delivery-drawer.js';
import { commandsOf, WebhookActions } from './webhook-actions.js';

const STATES = (['pending', 'delivered', 'failed'] as const).map((state) => [state, state] as const);

interface Props {
  base: Address<'/api/projects/{projectId}/webhooks/{id}'>;
  webhook: ApiSchemas['Webhook'];
  onChange: () => void;
}

/** A webhook’s deliveries, and what can be done with it. */
export function OneWebhook({ base, webhook, onChange }: Props) {
  const { query } = place.value;
  const state = chosenOf('state', STATES) ?? '';
  const path = withQuery(below(base, '/deliveries'), { state, before: query.get('before') });
  const list = useLoad(path);
  const { data, reload } = list;
  const counts = useLoad(below(base, '/counts'));
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
              await call('POST', below(base, '/deliveries/{deliveryId}/replay', { deliveryId: id }));
              renew();
              return 'The delivery is tried again';
            })
          }
        />
      )}
    </section>
  );
}

function Counts({
  of: { delivered, failed, pending },
}: {
  of: DataOf<'GET', '/api/projects/{projectId}/webhooks/{id}/counts'>;
}) {
  return (
    <p>
      Last 24 hours: <span class="good">{delivered} delivered</span>,{' '}
      <span class={failed > 0 ? 'bad' : ''}>{failed} failed</span>, {pending} waiting
    </p>
  );
}
