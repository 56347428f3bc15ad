import type { App } from '../../app.js';
import { missing, unauthenticated } from '../../errors.js';
import { OPERATORS_TENANT } from '../../http/admission/tenants.js';
import {
  forgetOperators,
  OPERATOR_SESSIONS,
  OPERATORS,
  isIdle,
  operatorSessionStore,
  operatorStore,
  generateOperatorToken,
  hashOperatorToken,
  type Operator,
  type OperatorSession,
} from '../access/operator.js';
import { requireNewPassword } from '../users/credentials.js';
import type { ObjectId } from 'bson';
import { randomToken, sha256Hex } from '../../platform/ids.js';
import { withAuditEntry } from '../audit/audit-log.js';

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

const CONSOLE_SESSION_MS = 12 * 3_600_000;
const LINK_MS = 5 * 60_000;
const LINK_PREFIX = 'bsvc_link_';

/** A text that signs its operator in once, within five minutes; only its hash is stored, beside the sessions. */
export async function makeSignInLink(
  app: App,
  operator: Pick<Operator, '_id'>,
): Promise<{ link: string; expiresAt: Date }> {
  const link = LINK_PREFIX + randomToken(32);
  const createdAt = new Date(app.clock.now());
  const expiresAt = new Date(createdAt.getTime() + LINK_MS);
  await operatorSessionStore(app).insertOne({
    // Not in the form of a token: it opens nothing but a session.
    _id: sha256Hex(link),
    operatorId: operator._id,
    createdAt,
    expiresAt,
    isLink: true,
  });
  return { link, expiresAt };
}

/** Signs in by a link, which is used up with that. 401 LINK_INVALID for one that is used, too old, or none. */
export async function openByLink(
  app: App,
  link: string,
  requestId: string,
): Promise<OpenedSession & { operator: Operator }> {
  const now = new Date(app.clock.now());
  const used = link.startsWith(LINK_PREFIX)
    ? ((await operatorSessionStore(app).findOneAndDelete({ _id: sha256Hex(link), expiresAt: { $gt: now } })) as {
        operatorId: ObjectId;
      } | null)
    : null;
  const operator = used && (await operatorStore(app).findOne({ _id: used.operatorId }));
  if (!operator) {
    throw unauthenticated(
      'LINK_INVALID',
      'This link has expired or was already used. Create a new one with "bsvc console"',
    );
  }
  const opened = await withAuditEntry(
    app,
    { actor: operator.email, action: 'operator login', input: { by: 'link' }, requestId },
    () => openOperatorSession(app, operator, CONSOLE_SESSION_MS, { isConsole: true }),
  );
  return { operator, ...opened };
}

export interface OpenedSession {
  /** Shown once, stored nowhere. */
  token: string;
  expiresAt: Date;
}

/**
 * Gives out a token that works for `ttlMs`, unless its operator is removed before; one of the console ends earlier when
 * it is not used. In the same transaction `admit` throws why the operator, as it is then, gets none.
 */
export async function openOperatorSession(
  app: App,
  operator: Pick<Operator, '_id'>,
  ttlMs: number,
  { isConsole = false, admit }: { isConsole?: boolean; admit?: (stored: Operator | null) => void } = {},
): Promise<OpenedSession> {
  const token = generateOperatorToken();
  const nowMs = app.clock.now();
  const expiresAt = new Date(nowMs + ttlMs);
  const session: OperatorSession = {
    _id: hashOperatorToken(token),
    operatorId: operator._id,
    createdAt: new Date(nowMs),
    expiresAt,
    ...(isConsole && { isConsole, usedAt: new Date(nowMs) }),
  };
  await app.db.transaction((tx) => {
    admit?.(tx.get<Operator>(OPERATORS, operator._id));
    tx.put(OPERATOR_SESSIONS, session);
  });
  return { token, expiresAt };
}
