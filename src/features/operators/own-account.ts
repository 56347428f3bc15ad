import type { App } from '../../app.js';
import { unauthenticated } from '../../errors.js';
import {
  forgetOperators,
  operatorSessionStore,
  operatorStore,
  type OperatorSession,
  type SignedInOperator,
} from '../access/operator.js';
import { Problems } from '../documents/reply/problems.js';
import { checkNewPassword } from '../users/credentials.js';
import { OPERATORS_PARTY } from './log-in-operator.js';

/**
 * Gives an operator a new password, who says the current one, and ends all other sessions of theirs. 400 for no good
 * one, 401 INVALID_CREDENTIALS; 503 when too many sign-ins wait.
 */
export async function changeOwnPassword(
  app: App,
  { operator, session }: SignedInOperator,
  { currentPassword, newPassword }: { currentPassword: string; newPassword: string },
): Promise<void> {
  const problems = new Problems();
  checkNewPassword(newPassword, problems, 'newPassword');
  problems.throwIfAny();
  const passwordHash = await app.passwords.inTurn(OPERATORS_PARTY, async (bcrypt) => {
    if (!(await bcrypt.matches(currentPassword, operator.passwordHash))) {
      throw unauthenticated('INVALID_CREDENTIALS', 'The current password is not right');
    }
    return bcrypt.hash(newPassword);
  });
  await operatorStore(app).updateOne({ _id: operator._id }, { $set: { passwordHash } });
  await endOtherSessions(app, { operator, session });
}

/** The open sessions of an operator, the newest first. */
export function listOwnSessions(app: App, { operator }: SignedInOperator): Promise<OperatorSession[]> {
  const open = { operatorId: operator._id, expiresAt: { $gt: new Date(app.clock.now()) }, isLink: { $exists: false } };
  return operatorSessionStore(app).find(open).sort({ createdAt: -1 }).limit(200).toArray();
}

/** Ends all sessions of an operator but this one, links to sign in too; returns their number. */
export async function endOtherSessions(app: App, { operator, session }: SignedInOperator): Promise<number> {
  const { deletedCount } = await operatorSessionStore(app).deleteMany({
    operatorId: operator._id,
    _id: { $ne: session._id },
  });
  forgetOperators(app);
  return deletedCount;
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
