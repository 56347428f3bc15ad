import { prepare, addressOf } from '../api.js';
import { below, type Address } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { changedEntries } from '../json.js';
import { useLoad } from '../load.js';
import { ErrorNote } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { DrawerForm } from '../parts/drawer.js';
import { Choice, Field, listIn, TextArea, useForm, PasswordField } from '../parts/form.js';
import { PageHead, Pairs, Empty } from '../parts/page-head.js';
import { goTo, linkHere, place } from '../routes.js';
import { mayChange, projectPath } from '../session.js';
import { moment } from '../format.js';
import { CrudScreen, opens } from '../parts/crud-screen.js';

type SignIn = ApiSchemas['SignInSettings'];

const CODES = [
  ['off', 'off'],
  ['existing', 'users with an account'],
  ['signup', 'anyone: a new email gets an account'],
] as const;
const FACTORS = [
  ['off', 'off'],
  ['optional', 'users may add one'],
  ['required', 'users have to add one'],
] as const;
const GUESTS = [
  ['off', 'off'],
  ['on', 'users may begin without an email'],
] as const;
const TOKENS = [
  ['HS256', 'HS256: this service alone can check them'],
  ['ES256', 'ES256: other servers can check them, too'],
] as const;

const nameOf = (choices: readonly (readonly [string, string])[], value: string): string =>
  choices.find(([each]) => each === value)?.[1] ?? value;

/** How users of a project sign in. */
export function SignInSettings() {
  const path = projectPath();
  const { data, error, reload } = useLoad(path);
  const stored = data?.signIn;
  return (
    <>
      <PageHead title="Sign-in">
        {mayChange.value && (
          <a class="button primary" href={linkHere({ edit: '1' })}>
            Edit…
          </a>
        )}
      </PageHead>
      <ErrorNote error={error} onRetry={reload} />
      {stored && (
        <Pairs
          of={{
            Passwords: 'always',
            'Email codes': nameOf(CODES, stored.codeLogin),
            MFA: nameOf(FACTORS, stored.mfa),
            'Delay of MFA resets': stored.mfaResetDelay,
            Passkeys: stored.passkeys ? `for ${stored.passkeys.rpId}` : 'off',
            'Anonymous users': stored.anonymous ? `on; inactive ones are deleted after ${stored.anonymousKeep}` : 'off',
            'Access tokens': stored.tokens,
            'Emails may link to': stored.redirects.join(', ') || 'no page',
          }}
        />
      )}
      <Commands of={[prepare('GET', path)]} />
      <Providers base={below(path, '/social')} />
      {stored && place.value.query.get('edit') && mayChange.value && (
        <EditSettings path={path} stored={stored} onClose={() => goTo(linkHere({ edit: null }))} />
      )}
    </>
  );
}

function EditSettings({
  path,
  stored,
  onClose,
}: {
  path: Address<'/api/projects/{projectId}'>;
  stored: SignIn;
  onClose: () => void;
}) {
  const form = useForm({
    ...stored,
    redirects: stored.redirects.join('\n'),
    host: stored.passkeys?.rpId ?? '',
    origins: stored.passkeys?.origins.join('\n') ?? '',
    anonymous: stored.anonymous ? 'on' : 'off',
  });
  const { codeLogin, mfa, mfaResetDelay, redirects, host, origins, anonymous, anonymousKeep, tokens } = form.values;
  const wanted: Partial<SignIn> = {
    codeLogin,
    mfa,
    mfaResetDelay: mfaResetDelay.trim(),
    redirects: listIn(redirects),
    passkeys: host.trim() === '' ? null : { rpId: host.trim(), origins: listIn(origins) },
    anonymous: anonymous === 'on',
    anonymousKeep: anonymousKeep.trim(),
    tokens,
  };
  const signIn = changedEntries(stored, wanted);
  return (
    <DrawerForm
      title="Edit sign-in"
      requests={[prepare('PATCH', path, { body: { signIn } })]}
      done="Sign-in is changed"
      isDirty={Object.keys(signIn).length > 0}
      onClose={onClose}
    >
      <Choice label="Email codes" choices={CODES} {...form.at('codeLogin')} />
      <Choice label="MFA" choices={FACTORS} {...form.at('mfa')} />
      <Field
        label="Delay of MFA resets"
        hint="For example 24h. The user is notified by email and can cancel it."
        {...form.at('mfaResetDelay')}
      />
      <TextArea
        label="Allowed redirect pages"
        rows={3}
        hint="Exact URLs, one per line, for links in emails: invitations, resets and verifications."
        {...form.at('redirects')}
      />
      <Field
        label="Passkey domain"
        hint="For example shop.example. Leave empty to disable passkeys."
        {...form.at('host')}
      />
      <TextArea label="Passkey origins" rows={2} hint="One per line." {...form.at('origins')} />
      <Choice label="Anonymous users" choices={GUESTS} {...form.at('anonymous')} />
      <Field
        label="Delete inactive anonymous users after"
        hint="For example 30d, counted from the end of their session."
        {...form.at('anonymousKeep')}
      />
      <Choice label="Access tokens" choices={TOKENS} {...form.at('tokens')} />
    </DrawerForm>
  );
}

type Base = Address<'/api/projects/{projectId}/social'>;
type Provider = ApiSchemas['SocialProvider'];

/** Services whose accounts open an account here. */
function Providers({ base }: { base: Base }) {
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
      {!stored && kind === 'other' && <Field label="Name" required {...form.at('other')} />}
      {isOther && (
        <Field
          label="Issuer"
          required
          hint="For example https://accounts.example.com. The rest is discovered."
          {...form.at('issuer')}
        />
      )}
      <p>
        The service sends people back to <code>{addressOf(`/api/userAuth/social/${name || '…'}/callback`)}</code>
      </p>
      <Field label="Client id" required {...form.at('clientId')} />
      <PasswordField label="Client secret" isNew {...form.at('clientSecret')} />
      <Field label="Scopes" hint="Leave empty for the default scopes." {...form.at('scopes')} />
      <TextArea label="Redirect URLs of the app" rows={3} hint="Exact URLs, one per line." {...form.at('pages')} />
    </DrawerForm>
  );
}
