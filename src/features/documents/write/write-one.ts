import type { App } from '../../../app.js';
import { type Committed, type DecidedWrite, commitWrite } from '../store/commit-writes.js';
import { askHooks } from './ask-hooks.js';
import { type Once, type RepeatableRequest, executeOnce } from './idempotency.js';

/**
 * Carries out the write of one document that `open` prepares, once per idempotency key, with the project's own code
 * between decision and write.
 */
export function writeOne(
  app: App,
  request: RepeatableRequest,
  open: () => DecidedWrite | Promise<DecidedWrite>,
): Promise<Once<Committed>> {
  const { place, action, key } = request;
  return executeOnce(app, request, async (mark) => {
    const write = await open();
    const [asked] = askHooks(app, place.hooked, [write], { isOne: true, idempotencyKey: key });
    return commitWrite(app, asked!, await mark(action === 'delete' ? [] : [write.id]));
  });
}
