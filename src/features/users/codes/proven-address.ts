import type { App } from '../../../app.js';
import { requireCollection } from '../../collections/collection-store.js';
import { USERS } from '../../collections/users-collection.js';
import type { Project } from '../../projects/project.js';
import { insertUser } from '../accounts/insert-user.js';
import { readNewUser } from '../accounts/new-user.js';
import type { Client } from '../sessions/open-session.js';
import type { User } from '../user.js';
import { askSignUp } from '../user-hooks.js';
import { takeOver } from './ownership.js';

/**
 * The account of an address for the person who has just proven it outside the account's sessions. One that never proved
 * it loses password, sessions, factors and identities. Null when the account changed in between: look again.
 */
export async function claimAccount(app: App, project: Project, user: User): Promise<User | null> {
  if (user.emailVerified) return user;
  return takeOver(app, project, user, { email: user.email, emailVerified: false }, {}, null);
}

/**
 * A new account without a password for the person who has proven the address. 409 EMAIL_TAKEN or DUPLICATE_VALUE, 400
 * VALIDATION_FAILED where the schema of `users` requires more, 403 QUOTA_EXCEEDED.
 */
export async function createProvenUser(
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
