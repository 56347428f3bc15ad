import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { requireCollection } from '../../collections/collection-store.js';
import { USERS } from '../../collections/users-collection.js';
import { changeDocumentRecord } from '../../documents/store/document-store.js';
import type { Project } from '../../projects/project.js';
import type { User } from '../user.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { endSessions, sessionsEnd, type KnownAccount } from '../sessions/end-sessions.js';
import { tokensEnded, userGone } from '../user-store.js';

/**
 * Changes the account that matches by one write, which webhooks receive as an update of `users`, and
 * answers it as it is afterwards; null when none matches. A write that ends its sessions ends its access tokens by the
 * same transaction.
 */
export async function changeUser(
  app: App,
  project: Project,
  filter: Record<string, unknown> & { _id: ObjectId },
  set: Record<string, unknown>,
): Promise<User | null> {
  const collection = await requireCollection(app, project._id, USERS);
  const ended = tokensEnded(app, project._id, filter._id, set);
  return (await changeDocumentRecord(app, collection, { ...filter, isDeleted: false }, set, ended)) as User | null;
}

const DISABLED_AT = `${HIDDEN_FIELD}.disabledAt`;

/**
 * Closes an account: no sign-in, no refresh, and its access tokens end here at once, elsewhere within a second.
 * Harmless to repeat; 404 when the user is gone.
 */
export async function disableUser(app: App, project: Project, user: KnownAccount): Promise<User> {
  const disabledAt = new Date(app.clock.now());
  const disabled = await changeAccount(app, project, user, { [DISABLED_AT]: disabledAt, ...sessionsEnd(app, user) });
  await endSessions(app, project, disabled, 'account disabled');
  return disabled;
}

/** Opens a closed account again; sessions ended by closing it stay ended. */
export function enableUser(app: App, project: Project, user: Pick<User, '_id'>): Promise<User> {
  return changeAccount(app, project, user, { [DISABLED_AT]: null });
}

async function changeAccount(
  app: App,
  project: Project,
  { _id }: Pick<User, '_id'>,
  set: Record<string, unknown>,
): Promise<User> {
  const changed = await changeUser(app, project, { _id }, set);
  if (!changed) throw userGone();
  return changed;
}
