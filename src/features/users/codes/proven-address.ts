import type { App } from '../../../app.js';
import type { Collection } from '../../collections/collection.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { insertUser } from '../accounts/insert-user.js';
import { readNewUser } from '../accounts/new-user.js';
import type { User } from '../user.js';
import { takeOver } from './ownership.js';

/**
 * The account of an address for the person who has just proven it outside the account's sessions. One that never proved
 * it, or whose password may be a stranger's, loses password, sessions and identities. Null when the account changed in
 * between: look again.
 */
export async function claimAccount(app: App, project: Project, user: User): Promise<User | null> {
  const { unprovenPassword = false } = user[HIDDEN_FIELD];
  if (user.emailVerified && !unprovenPassword) return user;
  return takeOver(
    app,
    project,
    user,
    {
      email: user.email,
      emailVerified: user.emailVerified,
      [`${HIDDEN_FIELD}.unprovenPassword`]: unprovenPassword || { $ne: true },
    },
    { [`${HIDDEN_FIELD}.passwordHash`]: null, [`${HIDDEN_FIELD}.unprovenPassword`]: false },
    // Of an address that was proven before, a factor was enrolled by who had the mailbox.
    { prover: null, keepsFactors: user.emailVerified },
  );
}

/**
 * A new account without a password for the person who has proven the address. 409 EMAIL_TAKEN or DUPLICATE_VALUE, 400
 * VALIDATION_FAILED where the schema of `users` requires more, 403 QUOTA_EXCEEDED.
 */
export async function createProvenUser(
  app: App,
  collection: Collection,
  email: string,
  fields: Record<string, unknown> = {},
): Promise<User> {
  const body = { email, emailVerified: true, ...fields };
  const { user } = readNewUser(collection, body, { setter: 'project', needsPassword: false }, app.clock.now());
  await insertUser(app, collection, user);
  return user;
}
