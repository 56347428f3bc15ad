import { prepare } from '../api.js';
import { below, type Address } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { useLoad } from '../load.js';
import { ErrorNote } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { DrawerForm } from '../parts/drawer.js';
import { Choice, Field, listIn, TextArea, useForm } from '../parts/form.js';
import { PageHead, Pairs } from '../parts/page-head.js';
import { goTo, linkHere, place } from '../routes.js';
import { mayChange, projectPath } from '../session.js';
import { Providers } from './providers.js';

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
            'Codes by mail': nameOf(CODES, stored.codeLogin),
            'Second factor': nameOf(FACTORS, stored.mfa),
            'A reset of it takes': stored.mfaResetDelay,
            Passkeys: stored.passkeys ? `for ${stored.passkeys.rpId}` : 'off',
            'Anonymous users': stored.anonymous ? `on; inactive ones are deleted after ${stored.anonymousKeep}` : 'off',
            'Access tokens': stored.tokens,
            'Mails may link to': stored.redirects.join(', ') || 'no page',
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
  const signIn = Object.fromEntries(
    Object.entries(wanted).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(stored[name as keyof SignIn]),
    ),
  );
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
