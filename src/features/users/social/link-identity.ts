import type { App } from '../../../app.js';
import { conflict, invalid, type AppError } from '../../../errors.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { changeUser } from '../accounts/change-user.js';
import { isEmailConflict } from '../accounts/insert-user.js';
import { identityStore, type LinkedIdentity } from '../accounts/sign-in-methods.js';
import { isEmail, normaliseEmail } from '../credentials.js';
import { isAnonymous, LASTING, type User } from '../user.js';
import { accountChanged } from '../user-store.js';
import { challengeOf, TO_LINK } from './social-login.js';
import { findLinked, linkIdentity } from './social-user.js';

const MAX_RACES = 3;

/**
 * Links the identity that came back with `rtCode` to the account of the user who began it; its address need not match.
 * A code works once, for a minute. 400 SOCIAL_CODE_INVALID, also when the sessions of the account were ended since it
 * began; 409 IDENTITY_TAKEN when the identity opens another account.
 */
export async function finishLink(
  app: App,
  project: Project,
  user: User,
  { rtCode, codeVerifier }: { rtCode: string; codeVerifier: string | null },
): Promise<LinkedIdentity> {
  const taken = await TO_LINK.take(app, project, rtCode, ({ linkOf }) => linkOf.equals(user._id));
  const attempt = taken?.held;
  if (
    !attempt ||
    (attempt.codeChallenge ?? null) !== challengeOf(codeVerifier) ||
    attempt.stamp !== (user[HIDDEN_FIELD].stamp ?? null)
  ) {
    throw codeInvalid();
  }
  const { provider, identity } = attempt;
  for (let race = 0; race < MAX_RACES; race++) {
    const linked = await findLinked(app, project, identity);
    if (linked && !linked._id.equals(user._id)) throw identityTaken();
    if (!linked && !(await linkIdentity(app, project, provider, identity, user))) continue;
    const link = await identityStore(app).findOne({ _id: identity });
    if (!link) continue;
    if (isAnonymous(user)) await makeLast(app, project, user, attempt.verifiedEmail);
    return link;
  }
  throw accountChanged();
}

/**
 * Makes the account of an anonymous user permanent, with the address that the provider has verified, unless another
 * account has it.
 */
async function makeLast(app: App, project: Project, user: User, verifiedEmail: string | null): Promise<void> {
  const email = normaliseEmail(verifiedEmail ?? '');
  const stillAnonymous = { _id: user._id, [`${HIDDEN_FIELD}.anonymous`]: true };
  const proven = { email, emailVerified: true, [`${HIDDEN_FIELD}.pendingEmail`]: null };
  try {
    await changeUser(app, project, stillAnonymous, { ...LASTING, ...(isEmail(email) && proven) });
  } catch (error) {
    if (!isEmailConflict(error)) throw error;
    await changeUser(app, project, stillAnonymous, LASTING);
  }
}

function codeInvalid(): AppError {
  return invalid(
    'SOCIAL_CODE_INVALID',
    'The code is unknown, used, expired or belongs to another user or code_verifier. Start again',
  );
}

function identityTaken(): AppError {
  return conflict('IDENTITY_TAKEN', 'This identity is linked to another account. Unlink it there first');
}
