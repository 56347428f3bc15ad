import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { WriteTurn } from '../../../platform/database/database.js';
import { type Committed, type DecidedWrite, commitWrite } from '../store/commit-writes.js';
import { askHooks } from './ask-hooks.js';
import { type RepeatableRequest, executeOnce } from './idempotency.js';

/** The write of one document, as a request asks for it. */
interface AskedWrite<T> {
  /** Checks the request and prepares its decision. A promise only when it takes time. */
  open: () => DecidedWrite | Promise<DecidedWrite>;
  answer: (committed: Committed) => T;
  /** The answer to a request that is repeated. */
  answerAgain: (ids: readonly ObjectId[]) => T | Promise<T>;
}

/**
 * Carries out the write of one document, once per idempotency key, with the project's own code between decision and
 * write. Where all is known that `open` asks for, nothing is waited for but the commit.
 */
export function writeOne<T>(
  app: App,
  request: RepeatableRequest,
  { open, answer, answerAgain }: AskedWrite<T>,
): Promise<T> {
  const { place, action, key } = request;
  const commit = (write: DecidedWrite, first?: WriteTurn): Promise<T> => {
    const [asked] = askHooks(app, place.hooked, [write], { isOne: true, idempotencyKey: key });
    return commitWrite(app, asked!, { first }).then(answer);
  };
  if (key === null) {
    const write = open();
    return write instanceof Promise ? write.then((opened) => commit(opened)) : commit(write);
  }
  return executeOnce(app, request, {
    async carryOut(mark) {
      const write = await open();
      return commit(write, await mark(action === 'delete' ? [] : [write.id]));
    },
    answerAgain,
  });
}
