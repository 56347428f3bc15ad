import type { App } from '../../../app.js';
import { commitWrites } from '../store/commit-writes.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { askHooks } from './ask-hooks.js';
import { openUpdate, readUpdate, type ChangeConditions } from './decide-update.js';
import { presentWritten } from './guard-fields.js';
import { executeOnce, type Mark } from './idempotency.js';
import { readWritten, type WriteTarget } from './write-target.js';

/**
 * Changes the given fields of an active document and answers it (rest-api.md 4.2, update rules): read, changed, judged
 * and stored as one, so that concurrent changes are not lost. 400, 403 OWNER_IMMUTABLE, OWNER_MISMATCH, FIELD_FIXED,
 * FIELD_PROTECTED or RULE_REFUSED, 404, 409 DUPLICATE_VALUE, 412 CHANGED_MEANWHILE for another version than the
 * expected one; then nothing has changed. With an idempotency key, repeating the request changes nothing more and
 * answers the document as it is now.
 */
export async function updateDocument(
  app: App,
  place: WriteTarget,
  idText: string,
  body: unknown,
  { idempotencyKey: key = null, ...conditions }: ChangeConditions & { idempotencyKey?: string | null } = {},
): Promise<PresentedDocument> {
  const carryOut = async (mark: Mark): Promise<PresentedDocument> => {
    const update = readUpdate(place, idText, body, app.clock.now(), conditions);
    const write = await openUpdate(app, place, update);
    const first = await mark([write.id]);
    const ask = askHooks(app, place.hooked, { isOne: true, idempotencyKey: key });
    const [written] = await commitWrites(app, [write], { first, ask });
    return presentWritten(written!.after!, place.writer);
  };
  const request = { place, action: 'update' as const, key, body: { id: idText, body } };
  return executeOnce(app, request, {
    carryOut,
    answerAgain: async ([id]) => presentWritten(await readWritten(app, place, id!), place.writer),
  });
}
