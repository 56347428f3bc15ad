import type { Account } from './account.js';
import { openMfa, openPasskeys, type Mfa, type Passkeys } from './factors.js';
import { openInvites, type Invites } from './invites.js';
import { openLinking, type Linking } from './linking.js';
import { openVerify, type Verify } from './verify.js';

/** The functions of accounts that few pages call. */
export interface Accounts<User> {
  readonly mfa: Mfa<User>;
  readonly passkeys: Passkeys<User>;
  readonly invites: Invites<User>;
  readonly link: Linking;
  readonly server: { verify: Verify<User> };
}

/** A module of its own, loaded when one of its functions is first called. */
export function openAccounts<User>(account: Account<User>): Accounts<User> {
  return {
    mfa: openMfa(account),
    passkeys: openPasskeys(account),
    invites: openInvites(account),
    link: openLinking(account),
    server: { verify: openVerify(account.connection) },
  };
}
