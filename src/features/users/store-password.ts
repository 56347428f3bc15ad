import type { App } from '../../app.js';
import { cutOffTokens } from '../access/token-cutoff.js';
import { HIDDEN_FIELD } from '../collections/field.js';
import type { Project } from '../projects/project.js';
import { revokeSessions } from './session.js';
import type { User } from './user.js';
import { userStore } from './user-store.js';

export interface PasswordChange {
  passwordHash: string;
  /** Only while this is the hash of the present password: for a change that rests on having known it. */
  over?: string | null;
  /** The session that goes on: the one in which the change was made. */
  keepSession?: string | null;
  /** The change came by a code that was mailed there, so the address is its owner's. */
  provesEmail?: boolean;
}

/**
 * Replaces a user's password and ends the sessions and access tokens that came before it. False when the account is gone or no longer has the
 * password in `over`. Repeating it after a crash is harmless.
 */
export async function storePassword(
  app: App,
  project: Project,
  user: Pick<User, '_id'>,
  change: PasswordChange,
): Promise<boolean> {
  const now = new Date(app.clock.now());
  const { matchedCount } = await userStore(app, project._id).updateOne(
    {
      _id: user._id,
      isDeleted: false,
      ...(change.over !== undefined && { [`${HIDDEN_FIELD}.passwordHash`]: change.over }),
    },
    {
      $set: {
        [`${HIDDEN_FIELD}.passwordHash`]: change.passwordHash,
        [`${HIDDEN_FIELD}.tokensSince`]: now,
        ...(change.provesEmail && { emailVerified: true }),
        updatedAt: now,
      },
    },
  );
  if (matchedCount === 0) return false;
  const keep = change.keepSession ?? null;
  await cutOffTokens(app, project._id, user._id.toHexString(), now, { exceptSession: keep });
  await revokeSessions(app, project._id, user._id, 'password changed', keep);
  return true;
}
