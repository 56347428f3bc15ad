import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { cutOffTokens } from '../access/token-cutoff.js';
import { HIDDEN_FIELD } from '../collections/field.js';
import type { Project } from '../projects/project.js';
import { revokeSessions } from './session.js';
import type { User } from './user.js';
import { userStore } from './user-store.js';

/** Closes an account: no sign-in, no refresh, and its access tokens end here at once, elsewhere within a second. Harmless to repeat; 404 when the user is gone. */
export async function disableUser(app: App, project: Project, user: Pick<User, '_id'>): Promise<User> {
  const now = new Date(app.clock.now());
  const disabled = await changeAccount(app, project, user, {
    [`${HIDDEN_FIELD}.disabledAt`]: now,
    [`${HIDDEN_FIELD}.tokensSince`]: now,
    updatedAt: now,
  });
  await cutOffTokens(app, project._id, user._id.toHexString(), now);
  await revokeSessions(app, project._id, user._id, 'account disabled');
  return disabled;
}

/** Opens a closed account again; sessions ended by closing it stay ended. */
export function enableUser(app: App, project: Project, user: Pick<User, '_id'>): Promise<User> {
  const updatedAt = new Date(app.clock.now());
  return changeAccount(app, project, user, { [`${HIDDEN_FIELD}.disabledAt`]: null, updatedAt });
}

async function changeAccount(
  app: App,
  project: Project,
  user: Pick<User, '_id'>,
  set: Record<string, unknown>,
): Promise<User> {
  const changed = (await userStore(app, project._id).findOneAndUpdate(
    { _id: user._id, isDeleted: false },
    { $set: set },
    { returnDocument: 'after' },
  )) as User | null;
  if (!changed) throw missing('USER_NOT_FOUND', 'The user no longer exists');
  return changed;
}
