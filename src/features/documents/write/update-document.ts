import type { App } from '../../../app.js';
import { commitWrites } from '../store/commit-writes.js';
import type { StoredDocument } from '../store/document.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { openUpdate, readUpdate, type ChangeConditions, type ReadUpdate } from './decide-update.js';
import { presentWritten } from './guard-fields.js';
import { runIdempotent } from './idempotency.js';
import { readWritten, type WriteTarget } from './write-target.js';

/**
 * Changes the given fields of an active document and answers it (rest-api.md 4.2, update rules): read, changed, judged
 * and stored as one, so that nobody's change to others is lost. 400, 403 OWNER_IMMUTABLE, OWNER_MISMATCH, FIELD_FIXED,
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
  const read = (): ReadUpdate => readUpdate(place, idText, body, app.clock.now(), conditions);
  if (key === null) return presentWritten(await carryOut(app, place, read()), place.writer);
  const request = { place, action: 'update' as const, key, body: { id: idText, body } };
  const answer = await runIdempotent(app, request, {
    prepare(requestId) {
      const update = read();
      return { ids: [update.id], run: () => carryOut(app, place, update, requestId) };
    },
    answerAgain: ([id]) => readWritten(app, place, id!),
  });
  return presentWritten(answer, place.writer);
}

async function carryOut(
  app: App,
  place: WriteTarget,
  read: ReadUpdate,
  requestId: string | null = null,
): Promise<StoredDocument> {
  const { id } = read;
  const { decide } = await openUpdate(app, place, read, { requestId });
  const [written] = await commitWrites(app, [{ collection: place.collection, id, action: 'update', decide }]);
  const { before, after } = written!;
  // Another attempt of the same request has changed it.
  return after === before ? readWritten(app, place, id) : after!;
}
