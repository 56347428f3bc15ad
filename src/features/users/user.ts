import { HIDDEN_FIELD } from '../collections/fields/field.js';
import type { StoredDocument } from '../documents/store/document.js';

/** The service's notes about an account beside the fields of its schema; never shown. */
export interface Account {
  /** bcrypt; null for an account that signs in through a provider only. */
  passwordHash: string | null;
  /** Set while the account may not be used. */
  disabledAt: Date | null;
  /** Access tokens issued until then have been ended; new ones are dated after it. */
  tokensSince: Date | null;
  /** Changes with whatever ends the sessions; only those that bear it go on. Absent until then. */
  stamp?: string;
  /** The one session that stays valid although it has an older stamp: the one in which the password was changed. */
  keptSession?: string | null;
  /** Changes when the address is verified; only identities linked under it can sign in. Absent until then. */
  ownership?: string;
  /** The one identity that stays valid although an earlier owner linked it: that of the verifying session. */
  keptIdentity?: string | null;
  /** Marks of links that their user took off: refused from then on, whether or not the record is gone. */
  unlinked?: string[];
  /** Signed up anonymously, and has no confirmed address, linked identity or passkey yet. */
  anonymous?: boolean;
  /** Granted by the project (accounts.md 3), where it has no field `roles` of its own. */
  roles?: string[];
  /** The second factor that sign-ins ask for; `lastStep` is the last 30 seconds whose code was taken. */
  totp?: { encrypted: string; since: Date; lastStep: number } | null;
  /** A secret that its user has not confirmed yet. */
  totpPending?: { encrypted: string; until: Date } | null;
  /** Codes that stand in for the app once each, keyed by its secret. */
  recovery?: string[] | null;
  /** Changes when the account passes to another owner or its factors are reset: only passkeys that bear it count. */
  factorStamp?: string;
  /** From then on the account has no factors: the project takes them off. */
  mfaResetAt?: Date | null;
  /** The address that takes the place of `email` once its code has come back. */
  pendingEmail?: { address: string; askedAt: Date } | null;
}

/** An end user as stored. Never trashed: an account is there or it is deleted. */
export interface User extends StoredDocument {
  /** Trimmed and lower-cased. Absent for anonymous users, until they confirm an address. */
  email?: string;
  emailVerified: boolean;
  [HIDDEN_FIELD]: Account;
}

/** True for a user without any way in but the session (accounts.md 4). */
export function isAnonymous(user: Pick<User, typeof HIDDEN_FIELD>): boolean {
  return user[HIDDEN_FIELD].anonymous === true;
}

/** The part of a write that makes an anonymous account permanent. */
export const LASTING = { [`${HIDDEN_FIELD}.anonymous`]: false } as const;

/** What names an account to people and counts: its address, else its id. */
export function nameOf({ _id, email }: Pick<User, '_id' | 'email'>): string {
  return email ?? _id.toHexString();
}
