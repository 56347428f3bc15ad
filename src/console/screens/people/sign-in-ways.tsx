import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, type Address } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { useLoad } from '../../load.js';
import { say, Trouble, useAction } from '../../parts/basics.js';
import { Commands, projectWord, quote } from '../../parts/commands.js';
import { DrawerForm } from '../../parts/drawer-form.js';
import { Choice, Field, listIn, TextArea } from '../../parts/form.js';
import { PageHead } from '../../parts/page-head.js';
import { goTo, linkHere, place } from '../../routes.js';
import { mayChange, projectPath } from '../../session.js';
import { Providers } from './social-providers.js';

type SignIn = ApiSchemas['SignInSettings'];

const CODES = [
  ['off', 'off'],
  ['existing', 'for those who have an account'],
  ['signup', 'for anybody: a new address gets an account'],
] as const;
const FACTORS = [
  ['off', 'off'],
  ['optional', 'users may add one'],
  ['required', 'users have to add one'],
] as const;
const GUESTS = [
  ['off', 'off'],
  ['on', 'users may begin without an address'],
] as const;
const TOKENS = [
  ['HS256', 'HS256: this service alone can check them'],
  ['ES256', 'ES256: other servers can check them, too'],
] as const;

const nameOf = (choices: readonly (readonly [string, string])[], value: string): string =>
  choices.find(([each]) => each === value)?.[1] ?? value;

/** How users of a project sign in. */
export function SignInWays() {
  const { query } = place.value;
  const path = projectPath();
  const { data, error, reload } = useLoad(path);
  const ways = data?.signIn;
  const close = (): void => goTo(linkHere({ edit: null }));
  return (
    <>
      <PageHead title="Sign-in">
        {mayChange.value && (
          <a class="button primary" href={linkHere({ edit: '1' })}>
            Edit…
          </a>
        )}
      </PageHead>
      <Trouble error={error} onRetry={reload} />
      {ways && (
        <dl class="pairs">
          <dt>Passwords</dt>
          <dd>always</dd>
          <dt>Codes by mail</dt>
          <dd>{nameOf(CODES, ways.codeLogin)}</dd>
          <dt>Second factor</dt>
          <dd>{nameOf(FACTORS, ways.mfa)}</dd>
          <dt>A reset of it takes</dt>
          <dd>{ways.mfaResetDelay}</dd>
          <dt>Passkeys</dt>
          <dd>{ways.passkeys ? `for ${ways.passkeys.rpId}` : 'off'}</dd>
          <dt>Guests</dt>
          <dd>{ways.anonymous ? `on; who cannot come back goes after ${ways.anonymousKeep}` : 'off'}</dd>
          <dt>Access tokens</dt>
          <dd>{ways.tokens}</dd>
          <dt>Mails may link to</dt>
          <dd>{ways.redirects.join(', ') || 'no page'}</dd>
        </dl>
      )}
      <Commands cli={`bsvc project show ${projectWord()}`} path={path} />
      <Providers base={below(path, '/social')} />
      {ways && query.get('edit') && mayChange.value && (
        <EditWays
          path={path}
          stored={ways}
          onClose={close}
          onSaved={() => {
            reload();
            close();
          }}
        />
      )}
    </>
  );
}

/** The changes as options of the command. */
function wordsOf(changes: Partial<SignIn>): string {
  const { codeLogin, mfa, mfaResetDelay, redirects, passkeys, anonymous, anonymousKeep, tokens } = changes;
  return [
    ...(codeLogin ? [`--code-login ${codeLogin}`] : []),
    ...(mfa ? [`--mfa ${mfa}`] : []),
    ...(mfaResetDelay === undefined ? [] : [`--mfa-reset-delay ${quote(mfaResetDelay)}`]),
    ...(redirects?.length === 0 ? ['--redirect none'] : []),
    ...(redirects ?? []).map((page) => `--redirect ${quote(page)}`),
    ...(anonymous === undefined ? [] : [`--anonymous ${anonymous ? 'on' : 'off'}`]),
    ...(anonymousKeep === undefined ? [] : [`--anonymous-keep ${quote(anonymousKeep)}`]),
    ...(tokens ? [`--tokens ${tokens}`] : []),
    ...(passkeys === null ? ['--passkey-rp-id none'] : []),
    ...(passkeys ? [`--passkey-rp-id ${quote(passkeys.rpId)}`] : []),
    ...(passkeys?.origins ?? []).map((origin) => `--passkey-origin ${quote(origin)}`),
  ].join(' ');
}

/** The settings as the form holds them: lists as lines of text. */
interface Form {
  codeLogin: SignIn['codeLogin'];
  mfa: SignIn['mfa'];
  mfaResetDelay: string;
  pages: string;
  host: string;
  origins: string;
  guests: 'off' | 'on';
  anonymousKeep: string;
  tokens: SignIn['tokens'];
}

const formOf = ({ redirects, passkeys, anonymous, ...same }: SignIn): Form => ({
  ...same,
  pages: redirects.join('\n'),
  host: passkeys?.rpId ?? '',
  origins: passkeys?.origins.join('\n') ?? '',
  guests: anonymous ? 'on' : 'off',
});

/** The settings of a form that differ from the stored ones. */
function changesIn(
  { codeLogin, mfa, mfaResetDelay, anonymousKeep, tokens, ...form }: Form,
  stored: SignIn,
): Partial<SignIn> {
  const host = form.host.trim();
  const wanted = {
    codeLogin,
    mfa,
    mfaResetDelay: mfaResetDelay.trim(),
    redirects: listIn(form.pages),
    passkeys: host === '' ? null : { rpId: host, origins: listIn(form.origins) },
    anonymous: form.guests === 'on',
    anonymousKeep: anonymousKeep.trim(),
    tokens,
  };
  return Object.fromEntries(
    Object.entries(wanted).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(stored[name as keyof SignIn]),
    ),
  );
}

function EditWays({
  path,
  stored,
  onClose,
  onSaved,
}: {
  path: Address<'/api/projects/{projectId}'>;
  stored: SignIn;
  onClose: () => void;
  onSaved: () => void;
}) {
  const [form, setForm] = useState(formOf(stored));
  const set =
    <N extends keyof Form>(name: N) =>
    (value: Form[N]): void =>
      setForm((before) => ({ ...before, [name]: value }));
  const changes = changesIn(form, stored);
  const [busy, save, error] = useAction(async () => {
    await call('PATCH', path, { body: { signIn: changes } });
    say('Sign-in is changed');
    onSaved();
  });
  return (
    <DrawerForm
      title="Edit sign-in"
      action="Save"
      isDirty={Object.keys(changes).length > 0}
      busy={busy}
      error={error}
      commands={{
        cli: `bsvc project update ${projectWord()} ${wordsOf(changes)}`,
        method: 'PATCH',
        path,
        body: { signIn: changes },
      }}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <Choice label="Codes by mail" value={form.codeLogin} choices={CODES} onChoose={set('codeLogin')} />
      <Choice label="Second factor" value={form.mfa} choices={FACTORS} onChoose={set('mfa')} />
      <Field
        label="A reset of a second factor takes"
        value={form.mfaResetDelay}
        hint="Such as 24h: the user is told by mail and can stop it."
        onText={set('mfaResetDelay')}
      />
      <TextArea
        label="Pages that mails may link to"
        rows={3}
        value={form.pages}
        hint="Exact addresses, one a line: for invitations, resets and confirmations."
        onText={set('pages')}
      />
      <Field
        label="Site of passkeys"
        value={form.host}
        hint="Such as shop.example; empty switches them off."
        onText={set('host')}
      />
      <TextArea label="Origins of passkeys" rows={2} value={form.origins} hint="One a line." onText={set('origins')} />
      <Choice label="Guests" value={form.guests} choices={GUESTS} onChoose={set('guests')} />
      <Field
        label="Guests who cannot come back are kept"
        value={form.anonymousKeep}
        hint="Such as 30d: those whose session has ended."
        onText={set('anonymousKeep')}
      />
      <Choice label="Access tokens" value={form.tokens} choices={TOKENS} onChoose={set('tokens')} />
    </DrawerForm>
  );
}
