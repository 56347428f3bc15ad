import { useState } from 'preact/hooks';
import { prepare } from '../api.js';
import { below, type Address, type DataOf } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { moment } from '../format.js';
import { useLoad } from '../load.js';
import { Secret } from '../parts/confirm.js';
import { CrudScreen } from '../parts/crud-screen.js';
import { DrawerForm } from '../parts/drawer.js';
import { Field, listIn, TextArea, Tick, useForm } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Empty } from '../parts/page-head.js';
import { goTo, linkHere, linkTo, place } from '../routes.js';
import { mayChange, projectPath } from '../session.js';
import { OneWebhook } from './deliveries.js';

type Webhook = ApiSchemas['Webhook'];

export function Webhooks() {
  const { parts, query } = place.value;
  const [, id = '', , chosen] = parts;
  const project = projectPath();
  const base = below(project, '/webhooks');
  const list = useLoad(base);
  const { data } = list;
  const [secret, setSecret] = useState<string | null>(null);
  const webhook = data?.items.find((each) => each.id === chosen);
  const edited = mayChange.value ? query.get('edit') : null;
  const collections = useLoad(edited ? below(project, '/collections') : null);
  return (
    <>
      <CrudScreen
        title="Webhooks"
        count={data?.items.length}
        actions={
          <a class="button primary" href={linkTo(['p', id, 'webhooks'], { edit: 'new' })}>
            <Icon name="plus" />
            Add a webhook
          </a>
        }
        list={list}
        keyOf={(each) => each.id}
        empty={
          <Empty title="No webhooks yet">
            <p>With one, your server is called when documents change: signed, in order, and again until it answers.</p>
          </Empty>
        }
        columns={[
          {
            name: 'URL',
            show: (each) => (
              <a
                class="opens"
                href={linkTo(['p', id, 'webhooks', each.id])}
                {...(each.id === chosen && { 'aria-current': 'true' as const })}
              >
                {each.url}
              </a>
            ),
          },
          { name: 'Events', show: ({ events }) => events.join(', ') },
          { name: 'Description', show: ({ description }) => description },
          { name: 'State', show: (each) => <State {...each} /> },
        ]}
      />
      {data && chosen !== undefined && !webhook && <p class="empty">This webhook no longer exists.</p>}
      {webhook && <OneWebhook key={webhook.id} base={below(base, '/{id}', { id: webhook.id })} webhook={webhook} />}
      {edited && (edited === 'new' || webhook) && (
        <WebhookDrawer
          base={base}
          stored={edited === 'new' ? null : webhook!}
          collections={collections.data?.items.map(({ name }) => name) ?? []}
          onClose={() => goTo(linkHere({ edit: null }))}
          onSecret={setSecret}
        />
      )}
      {secret !== null && <Secret what="Secret" value={secret} onClose={() => setSecret(null)} />}
    </>
  );
}

/** Why nothing is sent to a webhook, in words. */
const REASONS = {
  requested: 'disabled',
  gone: 'disabled: the receiver answered 410',
  failing: 'disabled: it failed for too long',
} as const;

function State({ enabled, disabledReason, failingSince }: Webhook) {
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

/** Adds a webhook, whose secret is handed on once, or changes one. */
function WebhookDrawer({
  base,
  stored,
  collections,
  onClose,
  onSecret,
}: {
  base: Address<'/api/projects/{projectId}/webhooks'>;
  stored: Webhook | null;
  /** Names of the project's collections. */
  collections: readonly string[];
  onClose: () => void;
  onSecret: (secret: string) => void;
}) {
  const form = useForm({
    url: stored?.url ?? '',
    events: stored?.events.join('\n') ?? '',
    description: stored?.description ?? '',
    enabled: stored?.enabled ?? true,
  });
  const { url, enabled } = form.values;
  const events = listIn(form.values.events);
  const unknown = events
    .map((event) => event.split('.')[0]!)
    .filter((name) => name !== '*' && collections.length > 0 && !collections.includes(name));
  const { url: _url, events: _events, ...others } = form.changed;
  const changes = {
    ...others,
    ...(url.trim() !== (stored?.url ?? '') && { url: url.trim() }),
    ...(events.join('\n') !== (stored?.events.join('\n') ?? '') && { events }),
  };
  const isDirty = Object.keys(changes).length > 0;
  return (
    <DrawerForm<Webhook | DataOf<'POST', '/api/projects/{projectId}/webhooks'>>
      title={stored ? 'Edit the webhook' : 'Add a webhook'}
      action={stored ? 'Save' : 'Add the webhook'}
      requests={[
        stored
          ? prepare('PATCH', below(base, '/{id}', { id: stored.id }), { body: changes })
          : prepare('POST', base, { body: { ...changes, url: url.trim(), events } }),
      ]}
      done={stored ? 'The webhook is changed' : 'The webhook is added'}
      isDirty={isDirty}
      mayGo={isDirty && url !== '' && events.length > 0}
      onDone={(answer) => {
        if ('secret' in answer) onSecret(answer.secret);
        onClose();
      }}
      onClose={onClose}
    >
      <Field label="URL" type="url" required placeholder="https://shop.example/hooks" {...form.at('url')} />
      <TextArea
        label="Events"
        rows={4}
        hint="One per line: orders.insert, orders.*, *.delete, or * for all."
        {...form.at('events')}
      />
      {unknown.length > 0 && (
        <p class="warn">
          There is no collection {[...new Set(unknown)].join(', ')}: nothing is sent until there is one.
        </p>
      )}
      <Field label="Description" {...form.at('description')} />
      <Tick label="Send events to it" {...form.at('enabled')} />
      {stored && !enabled && stored.enabled && (
        <p class="warn">Deliveries that wait are given up when you save; they can be tried again later.</p>
      )}
    </DrawerForm>
  );
}
