import type { HIDDEN_FIELD } from '../collections/field.js';
import type { StoredDocument } from '../documents/document.js';

/** What the service notes about an account beside the fields of its schema; no door shows it. */
export interface Account {
  /** bcrypt; null for an account that signs in through a provider only. */
  passwordHash: string | null;
  /** Set while the account may not be used. */
  disabledAt: Date | null;
  /** Access tokens issued until then have been ended; new ones are dated after it. */
  tokensSince: Date | null;
  /** Changes with whatever ends the sessions; only those that bear it go on. Absent until then. */
  stamp?: string;
  /** The one session that goes on though it bears an older stamp: the one in which the password was changed. */
  keptSession?: string | null;
}

/** An end user as stored. Never trashed: an account is there or it is deleted. */
export interface User extends StoredDocument {
  /** Trimmed and lower-cased. */
  email: string;
  emailVerified: boolean;
  [HIDDEN_FIELD]: Account;
}
