import { forbidden, type AppError } from '../../../errors.js';
import type { Tokens } from '../sessions/open-session.js';
import type { User } from '../user.js';

/** A user with the tokens of a new session. */
export interface SignedIn {
  user: User;
  tokens: Tokens;
}

export function accountDisabled(): AppError {
  return forbidden('ACCOUNT_DISABLED', 'This account has been disabled');
}
