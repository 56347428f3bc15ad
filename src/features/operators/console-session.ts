import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { unauthenticated } from '../../errors.js';
import { randomToken, sha256Hex } from '../../platform/ids.js';
import {
  operatorSessionStore,
  operatorStore,
  type Operator,
  generateOperatorToken,
  hashOperatorToken,
} from '../access/operator.js';
import { withAuditEntry } from '../audit/audit-log.js';

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
 * it is not used.
 */
export async function openOperatorSession(
  app: App,
  operator: Pick<Operator, '_id'>,
  ttlMs: number,
  { isConsole = false } = {},
): Promise<OpenedSession> {
  const token = generateOperatorToken();
  const nowMs = app.clock.now();
  const expiresAt = new Date(nowMs + ttlMs);
  await operatorSessionStore(app).insertOne({
    _id: hashOperatorToken(token),
    operatorId: operator._id,
    createdAt: new Date(nowMs),
    expiresAt,
    ...(isConsole && { isConsole, usedAt: new Date(nowMs) }),
  });
  return { token, expiresAt };
}
