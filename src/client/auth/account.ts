import type { ApiError, Failure } from '../api-error.js';
import type { backOff, Connection, randomKey } from '../connection.js';
import type { platform, reasonOf, sleep, Store, tellListener } from '../platform.js';
import type { KeptSession } from './kept-session.js';
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
  kept: KeptSession;
  store: Store;
  tools: {
    platform: typeof platform;
    randomKey: typeof randomKey;
    backOff: typeof backOff;
    sleep: typeof sleep;
    reasonOf: typeof reasonOf;
    tellListener: typeof tellListener;
  };
  pathPart: typeof pathPart;
  refuse: (message: string, failure: Failure) => ApiError;
}
