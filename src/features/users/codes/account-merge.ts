import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, invalid, type AppError } from '../../../errors.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { emailTaken } from '../accounts/insert-user.js';
import { oneTimeTokens } from '../../quota/one-time-token.js';
import type { User } from '../user.js';
import { findUser, findUserByEmail } from '../user-store.js';
import { claimAccount } from './ownership.js';

const MERGE_TOKENS = oneTimeTokens<{ anonymousId: ObjectId; userId: ObjectId; email: string }>('merge', 5 * 60_000);

/**
 * The error for an anonymous user who confirmed the address of another account: 409 EMAIL_TAKEN with a token that gives
 * the project's server both accounts (accounts.md 4). An account that never confirmed the address is taken over first,
 * as by a sign-in, so that its creator cannot get the anonymous user's documents.
 */
export async function emailTakenWithMergeToken(
  app: App,
  project: Project,
  anonymous: User,
  email: string,
): Promise<AppError> {
  const existing = await findUserByEmail(app, project._id, email);
  if (!existing || existing[HIDDEN_FIELD].disabledAt) return emailTaken();
  const owned = await claimAccount(app, project, existing);
  if (!owned) return emailTaken();
  const mergeToken = await MERGE_TOKENS.give(app, project, { anonymousId: anonymous._id, userId: owned._id, email });
  const message = 'The address has an account. Your server can merge the two within 5 minutes: POST merges';
  const details = [{ field: 'email', rule: 'merge', message, mergeToken }];
  return conflict('EMAIL_TAKEN', emailTaken().message, { details });
}

/**
 * Uses a token and returns the anonymous user and the account that it claims. 400 MERGE_TOKEN_INVALID for a token that
 * is unknown, used or expired, or if either account has changed.
 */
export async function useMergeToken(
  app: App,
  project: Project,
  token: string,
): Promise<{ anonymous: User; user: User }> {
  const taken = await MERGE_TOKENS.take(app, project, token);
  if (!taken) throw mergeTokenInvalid();
  const { anonymousId, userId, email } = taken.held;
  const anonymous = await findUser(app, project._id, anonymousId);
  const user = await findUser(app, project._id, userId);
  const isSame = user?.emailVerified && user.email === email && !user[HIDDEN_FIELD].disabledAt;
  if (!anonymous || anonymous.email !== undefined || anonymous[HIDDEN_FIELD].disabledAt || !user || !isSame) {
    throw mergeTokenInvalid();
  }
  return { anonymous, user };
}

function mergeTokenInvalid(): AppError {
  return invalid('MERGE_TOKEN_INVALID', 'The token is unknown, already used or expired');
}
