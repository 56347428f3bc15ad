import type { App } from '../../../app.js';
import { missing } from '../../../errors.js';
import { commitWrites } from '../store/commit-writes.js';
import { visibleDocuments, type StoredDocument } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { askHooks } from './ask-hooks.js';
import { openInserts, requireCreatable } from './decide-insert.js';
import { presentWritten } from './guard-fields.js';
import { executeOnce, type Mark } from './idempotency.js';
import { readNewDocument } from './new-document.js';
import { findReadable, type WriteTarget } from './write-target.js';

/**
 * Stores one document and answers it (rest-api.md 4.2). 400 with every problem, 403 for another owner, 409 for a taken
 * unique value. With an idempotency key, repeating the request stores nothing more and answers the document as it is
 * now, 404 when it is there no longer.
 */
export async function insertDocument(
  app: App,
  place: WriteTarget,
  body: unknown,
  key: string | null = null,
): Promise<PresentedDocument> {
  const { collection, writer, hooked } = place;
  const read = (): StoredDocument => readNewDocument(collection, body, writer, app.clock.now());
  const carryOut = async (mark: Mark): Promise<PresentedDocument> => {
    const document = read();
    requireCreatable(writer, document);
    const first = await mark([document._id]);
    const ask = askHooks(app, hooked, { isOne: true, idempotencyKey: key });
    const [written] = await commitWrites(app, await openInserts(app, place, [document]), { first, ask });
    return presentWritten(hooked ? written!.after! : document, writer);
  };
  const request = { place, action: 'insert' as const, key, body };
  return executeOnce(app, request, {
    carryOut,
    async answerAgain([id]) {
      const stored = await documentStore(app, collection).findOne({ _id: id!, ...visibleDocuments() });
      if (!stored) throw missing('DOCUMENT_NOT_FOUND', 'The document that this request stored was removed since');
      const { _id, createdAt } = stored;
      // Others may have changed it since to what the writer may not read.
      const shown = await findReadable(app, place, _id);
      return presentWritten(shown ?? { ...read(), _id, createdAt, updatedAt: createdAt }, writer);
    },
  });
}
