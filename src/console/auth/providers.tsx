import { addressOf, prepare } from '../api.js';
import { below, type Address } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { moment } from '../format.js';
import { useLoad } from '../load.js';
import { CrudScreen, opens } from '../parts/crud-screen.js';
import { DrawerForm } from '../parts/drawer.js';
import { Choice, Field, listIn, PasswordField, TextArea, useForm } from '../parts/form.js';
import { Empty } from '../parts/page-head.js';

type Base = Address<'/api/projects/{projectId}/social'>;
type Provider = ApiSchemas['SocialProvider'];

/** Services whose accounts open an account here. */
export function Providers({ base }: { base: Base }) {
  return (
    <CrudScreen
      title="Providers"
      isSection
      list={useLoad(base)}
      opened="provider"
      add="Add a provider…"
      keyOf={({ name }) => name}
      empty={
        <Empty title="No providers">
          <p>With one, users sign in by Google, GitHub or any service that speaks OpenID Connect.</p>
        </Empty>
      }
      columns={[
        { name: 'Name', show: ({ name }) => opens(name, name, 'provider') },
        { name: 'Issuer', show: ({ issuer }) => issuer },
        { name: 'Client id', show: ({ clientId }) => <code>{clientId}</code> },
        { name: 'Changed', show: ({ updatedAt }) => moment(updatedAt) },
      ]}
      form={(stored, close) => <ProviderDrawer base={base} stored={stored} onClose={close} />}
      remove={({ name }) => ({
        title: 'Remove the provider',
        label: `Remove ${name}`,
        text: 'Users can no longer sign in with it. Their accounts stay.',
        name,
        request: prepare('DELETE', below(base, '/{provider}', { provider: name })),
        done: 'The provider is removed',
      })}
    />
  );
}

const KINDS = [
  ['google', 'Google'],
  ['github', 'GitHub'],
  ['other', 'another, by OpenID Connect'],
] as const;
type Kind = (typeof KINDS)[number][0];

/** Adds a provider or replaces its settings: the secret is given again each time, as it is never shown. */
function ProviderDrawer({ base, stored, onClose }: { base: Base; stored: Provider | null; onClose: () => void }) {
  const form = useForm<
    Record<'other' | 'issuer' | 'clientId' | 'clientSecret' | 'scopes' | 'pages', string> & { kind: Kind }
  >({
    kind: 'google',
    other: '',
    issuer: stored?.issuer ?? '',
    clientId: stored?.clientId ?? '',
    clientSecret: '',
    scopes: stored?.scopes.join(' ') ?? '',
    pages: stored?.redirectUrls.join('\n') ?? '',
  });
  const { kind, other, issuer, clientId, clientSecret, scopes, pages } = form.values;
  const name = stored?.name ?? (kind === 'other' ? other.trim() : kind);
  const isOther = stored ? stored.name !== 'google' && stored.name !== 'github' : kind === 'other';
  const redirectUrls = listIn(pages);
  const body = {
    clientId: clientId.trim(),
    clientSecret,
    redirectUrls,
    ...(isOther && { issuer: issuer.trim() }),
    ...(scopes.trim() !== '' && { scopes: scopes.trim().split(/[\s,]+/) }),
    ...(stored?.tokenInAddress && { tokenInAddress: true }),
  };
  return (
    <DrawerForm
      title={stored ? `Provider ${stored.name}` : 'Add a provider'}
      requests={[prepare('PUT', below(base, '/{provider}', { provider: name }), { body })]}
      done="The provider is stored"
      isDirty={form.isDirty}
      mayGo={name !== '' && clientId !== '' && clientSecret !== '' && redirectUrls.length > 0}
      onClose={onClose}
    >
      {!stored && <Choice label="Service" choices={KINDS} {...form.at('kind')} />}
      {!stored && kind === 'other' && <Field label="Name" required autocomplete="off" {...form.at('other')} />}
      {isOther && (
        <Field
          label="Issuer"
          required
          autocomplete="off"
          hint="For example https://accounts.example.com. The rest is discovered."
          {...form.at('issuer')}
        />
      )}
      <p>
        The service sends people back to <code>{addressOf(`/api/userAuth/social/${name || '…'}/callback`)}</code>
      </p>
      <Field label="Client id" required autocomplete="off" {...form.at('clientId')} />
      <PasswordField label="Client secret" isNew {...form.at('clientSecret')} />
      <Field label="Scopes" autocomplete="off" hint="Leave empty for the default scopes." {...form.at('scopes')} />
      <TextArea label="Redirect URLs of the app" rows={3} hint="Exact URLs, one per line." {...form.at('pages')} />
    </DrawerForm>
  );
}
