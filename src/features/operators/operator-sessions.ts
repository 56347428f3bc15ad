import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { OPERATORS_TENANT } from '../../http/admission/tenants.js';
import {
  forgetOperators,
  isIdle,
  operatorSessionStore,
  operatorStore,
  type Operator,
  type OperatorSession,
} from '../access/operator.js';
import { requireNewPassword } from '../users/credentials.js';

type OneOperator = Pick<Operator, '_id'>;
const MAX_LISTED = 200;
/** Enough of the hash of a token to tell sessions apart; it opens nothing. */
const SHOWN_ID_LENGTH = 24;

/** The open sessions of an operator, those of tokens for scripts too, the newest first; at most 200. */
export async function listOperatorSessions(app: App, { _id }: OneOperator): Promise<OperatorSession[]> {
  const nowMs = app.clock.now();
  const open = { operatorId: _id, expiresAt: { $gt: new Date(nowMs) }, isLink: { $exists: false } };
  const found = await operatorSessionStore(app).find(open).sort({ createdAt: -1, _id: -1 }).limit(MAX_LISTED).toArray();
  return found.filter((session) => !isIdle(session, nowMs));
}

/** Ends the sessions of an operator, links to sign in too; returns their number. */
export async function endOperatorSessions(
  app: App,
  operator: OneOperator,
  { but }: { but?: Pick<OperatorSession, '_id'> } = {},
): Promise<number> {
  const { deletedCount } = await operatorSessionStore(app).deleteMany({
    operatorId: operator._id,
    ...(but && { _id: { $ne: but._id } }),
  });
  forgetOperators(app);
  return deletedCount;
}

/** Ends the session of an operator that is listed with this id; 404 OPERATOR_SESSION_NOT_FOUND. */
export async function endOperatorSession(app: App, operator: OneOperator, id: string): Promise<void> {
  const found = (await listOperatorSessions(app, operator)).find((session) => shownId(session) === id);
  const { deletedCount } = found ? await operatorSessionStore(app).deleteOne({ _id: found._id }) : { deletedCount: 0 };
  forgetOperators(app);
  if (deletedCount === 0) throw missing('OPERATOR_SESSION_NOT_FOUND', 'The operator has no such session');
}

/** Gives an operator a new password and ends all their sessions. 400 VALIDATION_FAILED for no good one. */
export async function setOperatorPassword(app: App, operator: OneOperator, password: string): Promise<void> {
  requireNewPassword(password);
  await storeOperatorPassword(app, operator, password);
  await endOperatorSessions(app, operator);
}

/** Stores a password that has been checked; 404 when the operator was removed since. */
export async function storeOperatorPassword(app: App, { _id }: OneOperator, password: string): Promise<void> {
  const passwordHash = await app.passwords.inTurn(OPERATORS_TENANT, (bcrypt) => bcrypt.hash(password));
  const { matchedCount } = await operatorStore(app).updateOne({ _id }, { $set: { passwordHash } });
  if (matchedCount === 0) throw missing('OPERATOR_NOT_FOUND', 'The operator no longer exists');
}

/** A session as the installation's owner sees it; nothing of it opens anything. */
export function presentOperatorSession(session: OperatorSession) {
  return {
    id: shownId(session),
    createdAt: session.createdAt.toISOString(),
    usedAt: session.usedAt?.toISOString() ?? null,
    expiresAt: session.expiresAt.toISOString(),
    console: session.isConsole === true,
  };
}

const shownId = ({ _id }: OperatorSession): string => _id.slice(0, SHOWN_ID_LENGTH);
