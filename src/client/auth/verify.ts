import type { ApiError } from '../api-error.js';
import type { Connection } from '../connection.js';
import { expiryOf } from './expiry.js';

/**
 * The user whose access token it is (the header `Authorization` of a request, or the token alone), null for one that
 * the service does not accept. What it answered counts until the token expires, for at most half a minute: that long a
 * session that was ended since may still work. Throws an `ApiError` when the service cannot be asked.
 */
export type Verify<User> = (bearer: string | null | undefined) => Promise<User | null>;

const REMEMBERED_MS = 30_000;
const MAX_REMEMBERED = 1000;
const TOKEN = /^(?:Bearer +)?([\w.-]{1,4096})$/i;

interface Answer {
  user: Promise<unknown>;
  untilMs: number;
}

export function openVerify<User>(connection: Connection): Verify<User> {
  const answers = new Map<string, Answer>();

  const ask = async (token: string): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}` };
    try {
      return await connection.send({ path: '/userAuth/verify', headers, isAnonymous: true });
    } catch (error) {
      if (REFUSED.includes((error as ApiError).code)) return null;
      answers.delete(token);
      throw error;
    }
  };

  return async (bearer) => {
    const token = TOKEN.exec(bearer ?? '')?.[1];
    if (token === undefined) return null;
    const nowMs = Date.now();
    const known = answers.get(token);
    if (known && nowMs < known.untilMs) return (await known.user) as User;
    answers.delete(token);
    // The oldest goes: a Map keeps the order in which its entries came.
    if (answers.size >= MAX_REMEMBERED) answers.delete(answers.keys().next().value!);
    const user = ask(token);
    answers.set(token, { user, untilMs: Math.min(nowMs + REMEMBERED_MS, expiryOf(token) ?? Infinity) });
    return (await user) as User;
  };
}

/** Of tokens that are not (any more) a user's. What is wrong with the project's key is thrown. */
const REFUSED: readonly string[] = ['TOKEN_INVALID', 'TOKEN_EXPIRED', 'MFA_ENROLMENT_REQUIRED'];
