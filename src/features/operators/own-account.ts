import type { App } from '../../app.js';
import { forbidden } from '../../errors.js';
import { operatorSessionStore, type OperatorSession, type SignedInOperator } from '../access/operator.js';
import type { ActingOperator } from '../access/require-operator.js';
import { requireNewPassword } from '../users/credentials.js';
import { OWN_PASSWORD, proveOperator, type Asking } from './log-in-operator.js';
import { endOperatorSessions, storeOperatorPassword } from './operator-sessions.js';

/** The signed-in operator; 403 NOT_SIGNED_IN for BSVC_ADMIN_TOKEN. */
export function requireOwnAccount({ signedIn }: ActingOperator): SignedInOperator {
  if (!signedIn) {
    throw forbidden('NOT_SIGNED_IN', 'This needs a signed-in operator, not BSVC_ADMIN_TOKEN');
  }
  return signedIn;
}

/**
 * Notes that the operator of a session has given the password again. 401 INVALID_CREDENTIALS; 423 after five in a row,
 * counted apart from failed sign-ins; 503 when too many sign-ins wait.
 */
export async function confirmOperator(
  app: App,
  { operator, session }: SignedInOperator,
  password: string,
  asking: Asking,
): Promise<void> {
  const purpose = { countedAs: OWN_PASSWORD, action: 'operator confirm', refusal: 'The password is not right' };
  await proveOperator(app, { email: operator.email, password }, asking, purpose);
  const confirmedAt = new Date(app.clock.now());
  await operatorSessionStore(app).updateOne({ _id: session._id }, { $set: { confirmedAt } });
}

/**
 * Gives an operator a new password, who says the current one, and ends all other sessions of theirs. 400 for no good
 * one, 401 INVALID_CREDENTIALS, whose failures count as those of confirmOperator; 503 when too many sign-ins wait.
 */
export async function changeOwnPassword(
  app: App,
  { operator, session }: SignedInOperator,
  { currentPassword, newPassword }: { currentPassword: string; newPassword: string },
  asking: Asking,
): Promise<void> {
  requireNewPassword(newPassword, 'newPassword');
  const credentials = { email: operator.email, password: currentPassword };
  const purpose = { countedAs: OWN_PASSWORD, action: null, refusal: 'The current password is not right' };
  await proveOperator(app, credentials, asking, purpose);
  await storeOperatorPassword(app, operator, newPassword);
  await endOperatorSessions(app, operator, { but: session });
}

/** A session as its operator sees it; nothing of it opens anything. */
export function presentOwnSession(session: OperatorSession, current: OperatorSession) {
  return {
    createdAt: session.createdAt.toISOString(),
    expiresAt: session.expiresAt.toISOString(),
    usedAt: session.usedAt?.toISOString() ?? null,
    console: session.isConsole === true,
    current: session._id === current._id,
  };
}
