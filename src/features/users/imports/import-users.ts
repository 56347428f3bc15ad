import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import { mapInTurns } from '../../../scheduler.js';
import { requireCollection } from '../../collections/collection-store.js';
import type { Collection } from '../../collections/collection.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { USERS } from '../../collections/users-collection.js';
import { insertEachRecord } from '../../documents/bulk/commit-each.js';
import type { Project } from '../../projects/project.js';
import { readNewUser } from '../accounts/new-user.js';
import { requireUserSize } from '../accounts/insert-user.js';
import type { User } from '../user.js';
import { prepareUserStore, userStore } from '../user-store.js';

/** An account of another service. */
export interface ImportedUser {
  /** Made of the id there, so that importing again finds what is there already. */
  id: ObjectId;
  email: string;
  emailVerified: boolean;
  /** Of bcrypt, or as `storeFirebaseHash` makes it; null for an account without a password. */
  passwordHash: string | null;
  disabled: boolean;
  createdAt: Date | null;
  /** Those that `users` does not declare are left out. */
  fields: Record<string, unknown>;
}

export interface UserImportOutcome {
  imported: number;
  /** Accounts of these ids are there already; they stay as they are. */
  present: number;
  /** Which of the users were refused and why, in order. */
  rejected: { index: number; message: string }[];
  /** Names of fields that users have and `users` does not declare. */
  undeclared: string[];
}

/** What bcrypt of other services writes for the same algorithm. */
const OTHER_BCRYPT = /^\$2[axy]?\$/;
const BCRYPT = /^\$2b\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}$/;
/** A sign-in with a hash of a higher cost would take seconds. */
const MAX_BCRYPT_COST = 16;

/** A bcrypt hash of another service as it is stored here, or null for what is none. */
export function findBcryptHash(text: string): string | null {
  const hash = text.replace(OTHER_BCRYPT, '$2b$');
  return BCRYPT.test(hash) && Number(hash.slice(4, 6)) <= MAX_BCRYPT_COST ? hash : null;
}

/**
 * Stores accounts with the passwords that they had elsewhere; no emails are sent. Each account is independent: what
 * does not fit is reported and the others are stored, each by one write. `dryRun` stores nothing and compares no unique
 * values.
 */
export async function importUsers(
  app: App,
  project: Project,
  users: readonly ImportedUser[],
  { dryRun = false }: { dryRun?: boolean } = {},
): Promise<UserImportOutcome> {
  const collection = await requireCollection(app, project._id, USERS);
  const stored = userStore(app, project._id);
  const there = stored.find({ _id: { $in: users.map(({ id }) => id) } }).project({ _id: 1 });
  const known = new Set((await there.toArray()).map(({ _id }) => (_id as ObjectId).toHexString()));
  const outcome: UserImportOutcome = { imported: 0, present: 0, rejected: [], undeclared: [] };
  const undeclared = new Set<string>();
  const accepted: { index: number; user: User }[] = [];
  const now = app.clock.now();
  await mapInTurns(users, (imported, index) => {
    if (known.has(imported.id.toHexString())) {
      outcome.present += 1;
      return;
    }
    try {
      accepted.push({ index, user: readImportedUser(collection, imported, undeclared, now) });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const [first, ...more] = (error.details ?? []).map((problem) => problem.message);
      const message = first === undefined ? error.message : [error.message, ...more].join('; ');
      outcome.rejected.push({ index, message });
    }
  });
  outcome.undeclared = [...undeclared];
  if (dryRun || accepted.length === 0) return { ...outcome, imported: accepted.length };
  await prepareUserStore(app, project._id);
  const documents = accepted.map(({ user }) => user);
  const refusals = await insertEachRecord(app, collection, documents);
  for (const [position, message] of refusals) outcome.rejected.push({ index: accepted[position]!.index, message });
  outcome.rejected.sort((a, b) => a.index - b.index);
  return { ...outcome, imported: accepted.length - refusals.size };
}

function readImportedUser(
  collection: Collection,
  { id, email, emailVerified, passwordHash, disabled, createdAt, fields }: ImportedUser,
  undeclared: Set<string>,
  now: number,
): User {
  const declared = new Set(collection.fields.map(({ name }) => name));
  const own = Object.entries(fields).filter(([name, value]) => {
    if (value === null || value === undefined) return false;
    if (!declared.has(name)) undeclared.add(name);
    return declared.has(name);
  });
  const body = { ...Object.fromEntries(own), email, emailVerified };
  const { user } = readNewUser(collection, body, { setter: 'project', needsPassword: false }, now);
  user._id = id;
  if (createdAt) user.createdAt = createdAt;
  Object.assign(user[HIDDEN_FIELD], { passwordHash, ...(disabled && { disabledAt: new Date(now) }) });
  requireUserSize(user);
  return user;
}
