import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import type { Address } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { say, useAction } from '../../parts/basics.js';
import { projectWord, quote } from '../../parts/commands.js';
import { DrawerForm } from '../../parts/drawer-form.js';
import { Field, Tick } from '../../parts/form.js';

/** A setting that was typed. */
const given = (name: 'providerApiKey' | 'providerWebhookSecret', value: string): ApiSchemas['ProjectChanges'] =>
  value.trim() === '' ? {} : { [name]: value.trim() };

/** The project's own provider and sender: what is left empty stays as it is, a box takes it away. */
export function MailSettingsDrawer({
  path,
  stored,
  onClose,
  onSaved,
}: {
  path: Address<'/api/projects/{projectId}'>;
  stored: ApiSchemas['ProjectDetails'];
  onClose: () => void;
  onSaved: () => void;
}) {
  const [from, setFrom] = useState(stored.providerFromEmail ?? '');
  const [key, setKey] = useState('');
  const [secret, setSecret] = useState('');
  const [isRemoved, setRemoved] = useState(false);
  const sender = from.trim();
  const own = isRemoved
    ? { providerApiKey: null, providerWebhookSecret: null }
    : { ...given('providerApiKey', key), ...given('providerWebhookSecret', secret) };
  const body = { ...(sender !== (stored.providerFromEmail ?? '') && { providerFromEmail: sender || null }), ...own };
  const [busy, save, error] = useAction(async () => {
    await call('PATCH', path, { query: { verify: (key.trim() !== '' && !isRemoved) || null }, body });
    say('The mail settings are changed');
    onSaved();
  });
  return (
    <DrawerForm
      title="Mail of the project"
      action="Save"
      isDirty={Object.keys(body).length > 0}
      busy={busy}
      error={error}
      commands={{
        ...(sender !== '' && { cli: `bsvc project update ${projectWord()} --mail-from ${quote(sender)}` }),
        method: 'PATCH',
        path,
        body: {
          ...body,
          ...(key !== '' && { providerApiKey: '…' }),
          ...(secret !== '' && { providerWebhookSecret: '…' }),
        },
      }}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <Field
        label="Sender"
        autocomplete="off"
        value={from}
        hint="An address, or Name <address>; empty is the server’s."
        onText={setFrom}
      />
      <Field
        label="Own key at Resend"
        type="password"
        autocomplete="off"
        value={key}
        hint={
          stored.providerApiKey
            ? `There is one (${stored.providerApiKey}); it is tried before it replaces that.`
            : 'Begins with re_; without one mails leave by the server’s provider. It is tried before it is stored.'
        }
        onText={setKey}
      />
      <Field
        label="Secret of its events"
        type="password"
        autocomplete="off"
        value={secret}
        hint={stored.providerWebhookSecret ? 'There is one.' : 'Begins with whsec_; bounces become known by it.'}
        onText={setSecret}
      />
      {stored.providerApiKey && <Tick label="Take the own provider away" isOn={isRemoved} onTick={setRemoved} />}
    </DrawerForm>
  );
}
