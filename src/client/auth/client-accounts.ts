import type { Account } from './account.js';
import { openBatch, type SentBatch } from '../batch.js';
import { openFiles, type Files } from '../files.js';
import { openMailer, type Mailer } from '../mail.js';
import { openMfa, openPasskeys, type Mfa, type Passkeys } from './factors.js';
import { openInvites, type Invites } from './invites.js';
import { openIdentities, openLinking, type Identities, type Linking } from './linking.js';
import { openSessions, type Sessions } from './sessions.js';
import { openSocial, type Social, openCode, openUpkeep, type Code, type Upkeep } from './upkeep.js';
import { openVerify, type Verify } from './verify.js';

/** The functions that few pages call, of accounts above all. */
export interface Accounts<User> {
  readonly mfa: Mfa<User>;
  readonly passkeys: Passkeys<User>;
  readonly invites: Invites<User>;
  readonly link: Linking;
  readonly identities: Identities;
  readonly files: Files;
  readonly sessions: Sessions;
  readonly code: Code<User>;
  readonly batch: SentBatch;
  readonly mail: Mailer;
  readonly own: Social<User> & Upkeep & { verify: Verify<User> };
}

/** A module of its own, loaded when one of its functions is first called. */
export function openAccounts<User>(account: Account<User>): Accounts<User> {
  return {
    mfa: openMfa(account),
    passkeys: openPasskeys(account),
    invites: openInvites(account),
    link: openLinking(account),
    identities: openIdentities(account),
    files: openFiles(account),
    sessions: openSessions(account),
    code: openCode(account),
    batch: openBatch(account),
    mail: openMailer(account),
    own: { ...openSocial(account), ...openUpkeep(account), verify: openVerify(account.connection) },
  };
}
