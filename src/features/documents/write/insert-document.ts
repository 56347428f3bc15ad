import type { App } from '../../../app.js';
import { AppError, missing } from '../../../errors.js';
import { visibleDocuments, type StoredDocument } from '../store/document.js';
import { documentStore, insertDocumentRecord } from '../store/document-store.js';
import { requireCreatable } from './admit-write.js';
import { ownIdOf, readNewDocument } from './new-document.js';
import { presentWritten } from './guard-fields.js';
import { runIdempotent } from './idempotency.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { findReadable, referrerOf, type WriteTarget } from './write-target.js';

/**
 * Stores one document and answers it (rest-api.md 4.2). 400 with every problem, 403 for another owner, 409 for a taken
 * unique value. With an idempotency key, repeating the request stores nothing more and answers the document as it is
 * now, 404 when it is there no longer.
 */
export async function insertDocument(
  app: App,
  place: WriteTarget,
  body: unknown,
  idempotencyKey: string | null = null,
): Promise<PresentedDocument> {
  const { collection, writer } = place;
  const read = (): StoredDocument => readNewDocument(collection, body, writer, app.clock.now());
  const admit = async (): Promise<StoredDocument> => {
    const document = read();
    await requireCreatable(writer, document);
    return document;
  };
  if (idempotencyKey === null) {
    const document = await admit();
    await insertDocumentRecord(app, collection, document, referrerOf(place));
    return presentWritten(document, writer);
  }
  return runIdempotent(
    app,
    { place, action: 'insert', key: idempotencyKey, body },
    {
      async prepare() {
        const document = await admit();
        return {
          ids: [document._id],
          async run([id], isRepeated) {
            const named = { ...document, _id: id! };
            try {
              await insertDocumentRecord(app, collection, named, referrerOf(place));
              return presentWritten(named, writer);
            } catch (error) {
              // Under an id of its client's the document may be somebody else's.
              const isOwn = isRepeated || !ownIdOf(body);
              if (!(isOwn && error instanceof AppError && error.kind === 'conflict')) throw error;
              // The same request may have stored it already: at the same moment, or before it died without an answer.
              const earlier = await documentStore(app, collection).findOne({ _id: id! });
              if (!earlier) throw error;
              return showAgain(earlier, () => named);
            }
          },
        };
      },
      async answerAgain([id]) {
        const stored = await documentStore(app, collection).findOne({ _id: id!, ...visibleDocuments() });
        if (!stored) throw documentGone();
        return showAgain(stored, read);
      },
    },
  );

  /** A stored document as its writer may see it: others may have changed it since to what the writer may not read. */
  async function showAgain({ _id, createdAt }: StoredDocument, sent: () => StoredDocument): Promise<PresentedDocument> {
    const shown = await findReadable(app, place, _id);
    return presentWritten(shown ?? { ...sent(), _id, createdAt, updatedAt: createdAt }, writer);
  }
}

function documentGone(): AppError {
  return missing('DOCUMENT_NOT_FOUND', 'The document that this request stored was removed since');
}
