import type { App } from '../../app.js';
import { generateOperatorToken, hashOperatorToken, operatorSessionStore, type Operator } from '../access/operator.js';

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
