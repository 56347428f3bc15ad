import { useState } from 'preact/hooks';
import { api } from '../../api.js';
import { useLoad } from '../../load.js';
import { say, Trouble, useAction } from '../../parts/basics.js';
import { Commands, projectWord, quote } from '../../parts/commands.js';
import { DrawerForm } from '../../parts/drawer-form.js';
import { Choice, Field, listIn, TextArea } from '../../parts/form.js';
import { PageHead } from '../../parts/page-head.js';
import { goTo, linkHere, place } from '../../routes.js';
import { mayChange } from '../../session.js';
import { Providers } from './social-providers.js';

interface SignIn {
  codeLogin: 'off' | 'existing' | 'signup';
  redirects: string[];
  mfa: 'off' | 'optional' | 'required';
  mfaResetDelay: string;
  passkeys: { rpId: string; origins: string[] } | null;
}

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

const nameOf = (choices: readonly (readonly [string, string])[], value: string): string =>
  choices.find(([each]) => each === value)?.[1] ?? value;

/** How users of a project sign in. */
export function SignInWays() {
  const { parts, query } = place.value;
  const path = `/api/projects/${parts[1] ?? ''}`;
  const { data, error, reload } = useLoad<{ signIn: SignIn }>(path);
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
          <dt>Mails may link to</dt>
          <dd>{ways.redirects.join(', ') || 'no page'}</dd>
        </dl>
      )}
      <Commands cli={`bsvc project show ${projectWord()}`} path={path} />
      <Providers base={`${path}/social`} />
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
function wordsOf({ codeLogin, mfa, mfaResetDelay, redirects, passkeys }: Partial<SignIn>): string {
  return [
    ...(codeLogin ? [`--code-login ${codeLogin}`] : []),
    ...(mfa ? [`--mfa ${mfa}`] : []),
    ...(mfaResetDelay === undefined ? [] : [`--mfa-reset-delay ${quote(mfaResetDelay)}`]),
    ...(redirects ?? []).map((page) => `--redirect ${quote(page)}`),
    ...(passkeys === null ? ['--passkey-rp-id none'] : []),
    ...(passkeys ? [`--passkey-rp-id ${quote(passkeys.rpId)}`] : []),
    ...(passkeys?.origins ?? []).map((origin) => `--passkey-origin ${quote(origin)}`),
  ].join(' ');
}

function EditWays({
  path,
  stored,
  onClose,
  onSaved,
}: {
  path: string;
  stored: SignIn;
  onClose: () => void;
  onSaved: () => void;
}) {
  const [codeLogin, setCodes] = useState(stored.codeLogin);
  const [mfa, setMfa] = useState(stored.mfa);
  const [delay, setDelay] = useState(stored.mfaResetDelay);
  const [pages, setPages] = useState(stored.redirects.join('\n'));
  const [host, setHost] = useState(stored.passkeys?.rpId ?? '');
  const [origins, setOrigins] = useState(stored.passkeys?.origins.join('\n') ?? '');
  const passkeys = host.trim() === '' ? null : { rpId: host.trim(), origins: listIn(origins) };
  const wanted: SignIn = { codeLogin, mfa, mfaResetDelay: delay.trim(), redirects: listIn(pages), passkeys };
  const changes: Partial<SignIn> = Object.fromEntries(
    Object.entries(wanted).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(stored[name as keyof SignIn]),
    ),
  );
  const [busy, save, error] = useAction(async () => {
    await api('PATCH', path, { signIn: changes });
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
      <Choice label="Codes by mail" value={codeLogin} choices={CODES} onChoose={setCodes} />
      <Choice label="Second factor" value={mfa} choices={FACTORS} onChoose={setMfa} />
      <Field
        label="A reset of a second factor takes"
        value={delay}
        hint="Such as 24h: the user is told by mail and can stop it."
        onText={setDelay}
      />
      <TextArea
        label="Pages that mails may link to"
        rows={3}
        value={pages}
        hint="Exact addresses, one a line: for invitations, resets and confirmations."
        onText={setPages}
      />
      <Field
        label="Site of passkeys"
        value={host}
        hint="Such as shop.example; empty switches them off."
        onText={setHost}
      />
      <TextArea label="Origins of passkeys" rows={2} value={origins} hint="One a line." onText={setOrigins} />
    </DrawerForm>
  );
}
