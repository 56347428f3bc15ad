import type { WriteTurn } from '../../../platform/database/database.js';
import type { App } from '../../../app.js';
import { missing } from '../../../errors.js';
import { whenKnown } from '../../../platform/when-known.js';
import type { Referrer, Writer } from '../../access/access-rules.js';
import { askNothing, type AskSet, NO_SETS } from '../../access/rules/access-sets.js';
import type { Collection } from '../../collections/collection.js';
import { foldChanged, withFolded } from '../../collections/fields/nocase.js';
import { requireRoomFor } from '../../quota/database-quota.js';
import { findListeners } from '../../webhooks/events/queue-events.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { type DecidedWrite, commitWrite } from '../store/commit-writes.js';
import { documentStore } from '../store/document-store.js';
import { type StoredDocument, visibleDocuments } from '../store/document.js';
import { duplicateValue } from '../store/explain-write-error.js';
import { openReferences } from '../store/new-references.js';
import { ruleRefused, presentWritten, requireSettableInside } from './admit-write.js';
import { isHookField } from './ask-hooks.js';
import { readNewDocument } from './new-document.js';
import { writeOne } from './idempotency.js';
import { type WriteTarget, findReadable } from './write-target.js';

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
  const { collection, writer } = place;
  const read = (): StoredDocument => readNewDocument(collection, body, writer, app.clock.now());
  const request = { place, action: 'insert' as const, key, body };
  const { done, again } = await writeOne(app, request, () => openInsert(app, place, read()));
  if (done) return presentWritten(done.after!, writer);
  const stored = await documentStore(app, collection).findOne({ _id: again[0]!, ...visibleDocuments() });
  if (!stored) throw missing('DOCUMENT_NOT_FOUND', 'The document that this request stored was removed since');
  const { _id, createdAt } = stored;
  // Others may have changed it since to what the writer may not read.
  const shown = await findReadable(app, place, _id);
  return presentWritten(shown ?? { ...read(), _id, createdAt, updatedAt: createdAt }, writer);
}

/**
 * Throws 403 RULE_REFUSED unless the rule `create` admits the document as it would be stored. Where rules name sets,
 * that is decided inside of the write, which gives `ask`.
 */
export function requireCreatable(writer: Writer, document: StoredDocument, ask?: AskSet): void {
  // Under row-level security its owner has just been set.
  if (!writer || writer.ownerField !== null || (writer.hasSets && !ask)) return;
  if (!writer.admits('create', document, ask ?? askNothing)) throw ruleRefused('create');
}

/** The decision to store one new document, as openInserts prepares it; 403 RULE_REFUSED where that is known before. */
export function openInsert(
  app: App,
  place: WriteTarget,
  document: StoredDocument,
): DecidedWrite | Promise<DecidedWrite> {
  requireCreatable(place.writer, document);
  return whenKnown([openInserts(app, place, [document])], ([[write]]) => write!);
}

/**
 * Prepares the decisions to store new documents: what takes time is asked here, once for all of them. 403
 * QUOTA_EXCEEDED. Each decision refuses by the rule `create`, by references and by an `_id` that is taken. A promise
 * only when it takes time.
 */
export function openInserts(
  app: App,
  place: WriteTarget,
  documents: readonly StoredDocument[],
): DecidedWrite[] | Promise<DecidedWrite[]> {
  const { collection, writer } = place;
  const folded = documents.map((document) => withFolded(collection, document));
  const named = (name: string): boolean =>
    documents.some((document) => Object.hasOwn(document, name)) || isHookField(place, name);
  const asked = [
    requireRoomFor(app, collection.projectId, { documents: folded }),
    openReferences(app, { collection, referrer: place.referrer ?? writer, named }),
    findListeners(app, collection, 'insert'),
    writer?.hasSets ? writer.openSets() : NO_SETS,
  ] as const;
  return whenKnown(asked, ([, references, listeners, sets]) =>
    folded.map((document): DecidedWrite => ({
      collection,
      id: document._id,
      action: 'insert',
      listeners,
      decide(stored, exists, read, fill) {
        const next = fill ? foldChanged(collection, document, fill(document)) : document;
        const ask = sets(exists);
        if (writer?.hasSets || fill) requireCreatable(writer, next, ask);
        if (writer?.hasSets) requireSettableInside(collection, writer, document, ask);
        if (!document.isDeleted) references?.require(null, next, exists, read);
        if (stored) throw duplicateValue(['_id']);
        return next;
      },
    })),
  );
}

/**
 * Stores a new document and what is `together` with it; it refers to others with the referrer's rights, or the
 * project's. 409 DUPLICATE_VALUE when a unique value is taken, 400 when an index cannot hold it, or REFERENCE_MISSING,
 * 403 QUOTA_EXCEEDED.
 */
export async function insertDocumentRecord(
  app: App,
  collection: Collection,
  document: StoredDocument,
  referrer: Referrer | null = null,
  together: readonly WriteTurn[] = [],
): Promise<void> {
  const place = { collection, writer: null, ...(referrer && { referrer }) };
  await commitWrite(app, { ...(await openInsert(app, place, document)), follow: together });
}
