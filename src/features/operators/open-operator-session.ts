import type { App } from '../../app.js';
import { generateOperatorToken, hashOperatorToken, operatorSessionStore, type Operator } from '../access/operator.js';

export interface OpenedSession {
  /** Shown once, stored nowhere. */
  token: string;
  expiresAt: Date;
}

/** Gives out a bearer token that works for `ttlMs`, unless its operator is removed before. */
export async function openOperatorSession(
  app: App,
  operator: Pick<Operator, '_id'>,
  ttlMs: number,
): Promise<OpenedSession> {
  const token = generateOperatorToken();
  const nowMs = app.clock.now();
  const expiresAt = new Date(nowMs + ttlMs);
  await operatorSessionStore(app).insertOne({
    _id: hashOperatorToken(token),
    operatorId: operator._id,
    createdAt: new Date(nowMs),
    expiresAt,
  });
  return { token, expiresAt };
}
