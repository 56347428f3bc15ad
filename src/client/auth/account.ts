import type { ApiError, Failure } from '../api-error.js';
import type { Connection } from '../connection.js';
import type { pathPart } from '../query.js';

/**
 * What the client hands to those of its functions that are loaded when they are first called. They import nothing of
 * the rest: their module would hold a second class of errors.
 */
export interface Account<User> {
  connection: Connection;
  /** Signs in by a route and its body. */
  enter: (path: string, body: unknown) => Promise<User>;
  /** Keeps what the service says of the user who is signed in. */
  keep: (user: User) => User;
  pathPart: typeof pathPart;
  refuse: (message: string, failure: Failure) => ApiError;
}
