import { ApiError } from '../api-error.js';
import type { Account } from './account.js';
import type { Accounts } from './client-accounts.js';

/** The functions of `client-accounts.ts`, each of which loads that module when it is first called. */
export function loadLater<User>(account: Account<User>): Omit<Accounts<User>, 'own'> & Accounts<User>['own'] {
  type Parts = Accounts<User>;
  let loaded: Promise<Parts> | undefined;
  const load = (): Promise<Parts> =>
    (loaded ??= import('./client-accounts.js').then(
      (module) => module.openAccounts(account),
      (cause: unknown) => {
        loaded = undefined;
        throw new ApiError('client-accounts.js could not be loaded', { status: 0, code: 'NETWORK', cause });
      },
    ));
  const call =
    (part: keyof Parts, name: PropertyKey) =>
    async (...given: unknown[]): Promise<unknown> =>
      // By name: which part has which function is for its interface to say.
      ((await load())[part] as unknown as Record<PropertyKey, (...given: unknown[]) => unknown>)[name]!(...given);
  const later = <P extends keyof Parts>(part: P): Parts[P] =>
    // Without `then`: what has it is taken for a promise.
    new Proxy({}, { get: (_, name) => (name === 'then' ? undefined : call(part, name)) }) as Parts[P];
  const own = [
    ...['socialUrl', 'finishSocial', 'verify', 'stepUp', 'sendStepUpCode', 'deleteAccount', 'requestPasswordReset'],
    ...['resetPassword', 'updateProfile', 'changePassword', 'verifyEmail', 'resendVerification', 'publicProfile'],
  ];
  return {
    mfa: later('mfa'),
    passkeys: later('passkeys'),
    invites: later('invites'),
    link: later('link'),
    identities: later('identities'),
    sessions: later('sessions'),
    code: later('code'),
    batch: later('batch'),
    mail: later('mail'),
    files: later('files'),
    // Named one by one above.
    ...(Object.fromEntries(own.map((name) => [name, call('own', name)])) as unknown as Parts['own']),
  };
}
