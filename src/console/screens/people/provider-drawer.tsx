import { useState } from 'preact/hooks';
import { addressOf, call } from '../../api.js';
import { below, type Address } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { say, useAction } from '../../parts/basics.js';
import { type CommandLine, ofProject, quote } from '../../parts/commands.js';
import { DrawerForm } from '../../parts/drawer-form.js';
import { Choice, Field, listIn, PasswordField, TextArea } from '../../parts/form.js';

type NewProvider = ApiSchemas['ApiRoutes']['PUT /api/projects/{projectId}/social/{provider}']['body'];

function commandOf(name: string, path: CommandLine['path'], body: NewProvider): CommandLine {
  const pages = body.redirectUrls.map((page) => ` --redirect-url ${quote(page)}`).join('');
  return {
    cli: `bsvc user social set ${quote(name || 'name')} ${ofProject()} --client-id ${quote(body.clientId)}${pages}`,
    method: 'PUT',
    path,
    body: { ...body, clientSecret: '…' },
  };
}

const KINDS = [
  ['google', 'Google'],
  ['github', 'GitHub'],
  ['other', 'another, by OpenID Connect'],
] as const;
type Kind = (typeof KINDS)[number][0];

/** Adds a provider or replaces its settings: the secret is given again each time, as it is never shown. */
export function ProviderDrawer({
  base,
  stored,
  onClose,
  onSaved,
}: {
  base: Address<'/api/projects/{projectId}/social'>;
  stored: ApiSchemas['SocialProvider'] | null;
  onClose: () => void;
  onSaved: () => void;
}) {
  const [kind, setKind] = useState<Kind>('google');
  const [other, setOther] = useState('');
  const [issuer, setIssuer] = useState(stored?.issuer ?? '');
  const [clientId, setClientId] = useState(stored?.clientId ?? '');
  const [clientSecret, setSecret] = useState('');
  const [scopes, setScopes] = useState(stored?.scopes.join(' ') ?? '');
  const [pages, setPages] = useState(stored?.redirectUrls.join('\n') ?? '');
  const name = stored?.name ?? (kind === 'other' ? other.trim() : kind);
  const isOther = stored ? stored.name !== 'google' && stored.name !== 'github' : kind === 'other';
  const path = below(base, '/{provider}', { provider: name });
  const body: NewProvider = {
    clientId: clientId.trim(),
    clientSecret,
    redirectUrls: listIn(pages),
    ...(isOther && { issuer: issuer.trim() }),
    ...(scopes.trim() !== '' && { scopes: scopes.trim().split(/[\s,]+/) }),
    ...(stored?.tokenInAddress && { tokenInAddress: true }),
  };
  const [busy, save, error] = useAction(async () => {
    await call('PUT', path, { body });
    say('The provider is stored');
    onSaved();
  });
  return (
    <DrawerForm
      title={stored ? `Provider ${stored.name}` : 'Add a provider'}
      action="Save"
      isDirty={clientSecret + other !== '' || clientId !== (stored?.clientId ?? '')}
      mayGo={name !== '' && clientId !== '' && clientSecret !== '' && body.redirectUrls.length > 0}
      busy={busy}
      error={error}
      commands={commandOf(name, path, body)}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      {!stored && <Choice label="Service" value={kind} choices={KINDS} onChoose={setKind} />}
      {!stored && kind === 'other' && (
        <Field label="Name" required autocomplete="off" value={other} onText={setOther} />
      )}
      {isOther && (
        <Field
          label="Issuer"
          required
          autocomplete="off"
          value={issuer}
          hint="Such as https://accounts.example.com: its discovery says the rest."
          onText={setIssuer}
        />
      )}
      <Callback name={name} />
      <Field label="Client id" required autocomplete="off" value={clientId} onText={setClientId} />
      <PasswordField label="Client secret" isNew value={clientSecret} onText={setSecret} />
      <Field
        label="Scopes"
        autocomplete="off"
        value={scopes}
        hint="Empty asks for the usual ones."
        onText={setScopes}
      />
      <TextArea
        label="Pages of the app to come back to"
        rows={3}
        value={pages}
        hint="Exact addresses, one a line."
        onText={setPages}
      />
    </DrawerForm>
  );
}

/** What the service asks for, where an app is registered there. */
const Callback = ({ name }: { name: string }) => (
  <p>
    The service sends people back to <code>{addressOf(`/api/userAuth/social/${name || '…'}/callback`)}</code>
  </p>
);
