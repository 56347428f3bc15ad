import { ApiError } from '../api-error.js';
import type { Account } from './account.js';
import type { Accounts } from './client-accounts.js';

/** The functions of `client-accounts.ts`, each of which loads that module when it is first called. */
export function loadLater<User>(account: Account<User>): Omit<Accounts<User>, 'server'> & Accounts<User>['server'] {
  type Parts = Accounts<User>;
  let loaded: Promise<Parts> | undefined;
  const load = (): Promise<Parts> =>
    (loaded ??= import('./client-accounts.js').then(
      (module) => module.openAccounts(account),
      (cause: unknown) => {
        loaded = undefined;
        throw new ApiError('A part of the client could not be loaded', { status: 0, code: 'NETWORK', cause });
      },
    ));
  const later = <P extends keyof Parts>(part: P, ...names: (keyof Parts[P])[]): Parts[P] =>
    Object.fromEntries(
      names.map((name) => [
        name,
        async (...given: unknown[]) => ((await load())[part][name] as (...given: unknown[]) => unknown)(...given),
      ]),
    ) as Parts[P];
  return {
    mfa: later('mfa', 'signIn', 'show', 'beginTotp', 'confirmTotp', 'removeTotp', 'renewRecoveryCodes'),
    passkeys: later('passkeys', 'signIn', 'challenge', 'register', 'list', 'rename', 'remove'),
    invites: later('invites', 'show', 'accept', 'send', 'list', 'withdraw'),
    link: later('link', 'start', 'finish'),
    ...later('server', 'verify'),
  };
}
