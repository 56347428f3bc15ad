import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, type Address } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { say, useAction } from '../../parts/basics.js';
import { type CommandLine, ofProject, quote } from '../../parts/commands.js';
import { DrawerForm } from '../../parts/drawer-form.js';
import { Field, listIn, TextArea, Tick } from '../../parts/form.js';

type Webhook = ApiSchemas['Webhook'];
type Changes = ApiSchemas['WebhookChanges'];

function commandOf(stored: Webhook | null, path: CommandLine['path'], changes: Changes): CommandLine {
  const words = [
    changes.url !== undefined && ` --url ${quote(changes.url)}`,
    changes.events && ` --events ${quote(changes.events.join(','))}`,
    changes.description !== undefined && ` --description ${quote(changes.description)}`,
    changes.enabled !== undefined && (changes.enabled ? ' --enable' : ' --disable'),
  ].filter(Boolean);
  return {
    cli: `bsvc webhook ${stored ? `edit ${stored.id}` : 'add'} ${ofProject()}${words.join('')}`,
    method: stored ? 'PATCH' : 'POST',
    path,
    body: changes,
  };
}

/** Adds a webhook, whose secret is handed on once, or changes one. */
export function WebhookDrawer({
  base,
  stored,
  collections,
  onClose,
  onSaved,
}: {
  base: Address<'/api/projects/{projectId}/webhooks'>;
  stored: Webhook | null;
  /** Names of the project's collections. */
  collections: readonly string[];
  onClose: () => void;
  onSaved: (secret: string | null) => void;
}) {
  const [url, setUrl] = useState(stored?.url ?? '');
  const [typed, setTyped] = useState(stored?.events.join('\n') ?? '');
  const [description, setDescription] = useState(stored?.description ?? '');
  const [isEnabled, setEnabled] = useState(stored?.enabled ?? true);
  const events = listIn(typed);
  const unknown = events
    .map((event) => event.split('.')[0]!)
    .filter((name) => name !== '*' && collections.length > 0 && !collections.includes(name));
  const changes: Changes = {
    ...(url.trim() !== (stored?.url ?? '') && { url: url.trim() }),
    ...(events.join('\n') !== (stored?.events.join('\n') ?? '') && { events }),
    ...(description !== (stored?.description ?? '') && { description }),
    ...(isEnabled !== (stored?.enabled ?? true) && { enabled: isEnabled }),
  };
  const isDirty = Object.keys(changes).length > 0;
  const path = stored && below(base, '/{id}', { id: stored.id });
  const [busy, save, error] = useAction(async () => {
    if (path) await call('PATCH', path, { body: changes });
    const made = path ? null : await call('POST', base, { body: { ...changes, url: url.trim(), events } });
    say(stored ? 'The webhook is changed' : 'The webhook is added');
    onSaved(made?.secret ?? null);
  });
  return (
    <DrawerForm
      title={stored ? 'Edit the webhook' : 'Add a webhook'}
      action={stored ? 'Save' : 'Add the webhook'}
      isDirty={isDirty}
      mayGo={isDirty && url !== '' && events.length > 0}
      busy={busy}
      error={error}
      commands={commandOf(stored, path ?? base, changes)}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <Field
        label="Address"
        type="url"
        required
        autocomplete="off"
        placeholder="https://shop.example/hooks"
        value={url}
        onText={setUrl}
      />
      <TextArea
        label="Events"
        rows={4}
        value={typed}
        hint="One a line: orders.insert, orders.*, *.delete, or * for all."
        onText={setTyped}
      />
      {unknown.length > 0 && (
        <p class="warn">
          There is no collection {[...new Set(unknown)].join(', ')}: nothing is sent until there is one.
        </p>
      )}
      <Field label="Description" autocomplete="off" value={description} onText={setDescription} />
      <Tick label="Send events to it" isOn={isEnabled} onTick={setEnabled} />
      {stored && !isEnabled && stored.enabled && (
        <p class="warn">Deliveries that wait are given up when you save; they can be tried again later.</p>
      )}
    </DrawerForm>
  );
}
