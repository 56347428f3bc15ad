import type { App } from '../../../app.js';
import { requireCollection } from '../../collections/collection-store.js';
import { USERS } from '../../collections/users-collection.js';
import type { Project } from '../../projects/project.js';
import { insertUser } from '../accounts/insert-user.js';
import { readNewUser } from '../accounts/new-user.js';
import type { Client } from '../sessions/open-session.js';
import type { User } from '../user.js';
import { askSignUp } from '../user-hooks.js';
import { transferOwnership } from './ownership.js';

/**
 * The account of an address, for the person who has just verified the address outside the account's sessions. If the
 * address was unverified, password, sessions, factors and identities are removed. Null if the account changed
 * in between; read it again.
 */
export async function claimAccount(app: App, project: Project, user: User): Promise<User | null> {
  if (user.emailVerified) return user;
  return transferOwnership(app, project, user, { email: user.email, emailVerified: false }, {}, null);
}

/**
 * A new account without a password for the person who verified the address. 409 EMAIL_TAKEN or DUPLICATE_VALUE, 400
 * VALIDATION_FAILED where the schema of `users` requires more, 403 QUOTA_EXCEEDED.
 */
export async function createVerifiedUser(
  app: App,
  project: Project,
  { email, client }: { email: string; client: Client },
  fields: Record<string, unknown> = {},
): Promise<User> {
  const body = { email, emailVerified: true, ...fields };
  const collection = await requireCollection(app, project._id, USERS);
  const options = { setter: 'project', needsPassword: false } as const;
  const { user: wanted } = readNewUser(collection, body, options, app.clock.now());
  const user = await askSignUp(app, project, collection, wanted, client);
  await insertUser(app, collection, user);
  return user;
}
