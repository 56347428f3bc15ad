import { useState } from 'preact/hooks';
import { below } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { Commands, ofProject } from '../../parts/commands.js';
import { Secret } from '../../parts/confirm.js';
import { Icon } from '../../parts/icon.js';
import { Empty, PageHead } from '../../parts/page-head.js';
import { List } from '../../parts/table.js';
import { goTo, linkHere, linkTo, place } from '../../routes.js';
import { mayChange, projectPath } from '../../session.js';
import { OneWebhook } from './deliveries.js';
import { REASONS } from './webhook.js';
import { WebhookDrawer } from './webhook-drawer.js';

export function Webhooks() {
  const { parts, query } = place.value;
  const project = projectPath();
  const base = below(project, '/webhooks');
  const list = useLoad(base);
  const { data, reload } = list;
  const [secret, setSecret] = useState<string | null>(null);
  const chosen = parts[3];
  const webhook = data?.items.find(({ id }) => id === chosen);
  const edited = mayChange.value ? query.get('edit') : null;
  const close = (): void => goTo(linkHere({ edit: null }));
  const collections = useLoad(edited ? below(project, '/collections') : null);
  return (
    <>
      <PageHead title="Webhooks" count={data?.items.length}>
        {mayChange.value && (
          <a class="button primary" href={linkTo(['p', parts[1] ?? '', 'webhooks'], { edit: 'new' })}>
            <Icon name="plus" />
            Add a webhook
          </a>
        )}
      </PageHead>
      <List
        label="Webhooks"
        of={list}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No webhooks yet">
            <p>With one, your server is called when documents change: signed, in order, and again until it answers.</p>
          </Empty>
        }
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
          { name: 'Description', show: ({ description }) => description },
          { name: 'State', show: (each) => <State {...each} /> },
        ]}
      />
      <Commands cli={`bsvc webhook list ${ofProject()}`} path={base} />
      {data && chosen !== undefined && !webhook && <p class="empty">This webhook is gone.</p>}
      {webhook && (
        <OneWebhook
          key={webhook.id}
          base={below(base, '/{id}', { id: webhook.id })}
          webhook={webhook}
          onChange={reload}
        />
      )}
      {edited && (edited === 'new' || webhook) && (
        <WebhookDrawer
          base={base}
          stored={edited === 'new' ? null : webhook!}
          collections={collections.data?.items.map(({ name }) => name) ?? []}
          onClose={close}
          onSaved={(made) => {
            reload();
            setSecret(made);
            close();
          }}
        />
      )}
      {secret !== null && <Secret what="Secret" value={secret} onClose={() => setSecret(null)} />}
    </>
  );
}

function State({ enabled, disabledReason, failingSince }: ApiSchemas['Webhook']) {
  if (!enabled) {
    return (
      <span class={disabledReason === 'requested' ? 'tag' : 'tag bad'}>{REASONS[disabledReason ?? 'requested']}</span>
    );
  }
  return failingSince ? (
    <span class="tag bad">failing since {moment(failingSince)}</span>
  ) : (
    <span class="tag good">active</span>
  );
}
