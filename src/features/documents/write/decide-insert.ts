import type { App } from '../../../app.js';
import type { Referrer, Writer } from '../../access/access-rules.js';
import type { Collection } from '../../collections/collection.js';
import { withFolded } from '../../collections/fields/nocase.js';
import { requireRoomFor } from '../../quota/database-quota.js';
import { withOutbox } from '../../webhooks/outbox/outbox-field.js';
import { queueEvents } from '../../webhooks/outbox/queue-events.js';
import { commitWrites, type DecidedWrite } from '../store/commit-writes.js';
import type { StoredDocument } from '../store/document.js';
import { openReferences } from '../store/new-references.js';
import { duplicateValue } from '../store/explain-write-error.js';
import { hookFields } from './ask-hooks.js';
import { ruleRefused } from './admit-write.js';
import { requireSettableInside } from './guard-fields.js';
import { referrerOf, type WriteTarget } from './write-target.js';

/**
 * Throws 403 RULE_REFUSED unless the rule `create` admits the document as it would be stored. Where rules name sets,
 * that is decided inside of the write.
 */
export function requireCreatable(writer: Writer, document: StoredDocument): void {
  // Under row-level security its owner has just been set.
  if (!writer || writer.ownerField !== null) return;
  if (!writer.hasSets && !writer.admits('create', document, () => false)) throw ruleRefused('create');
}

/**
 * Prepares the decisions to store new documents: what takes time is asked here, once for all of them. 403
 * QUOTA_EXCEEDED. Each decision refuses by the rule `create`, by references and by an `_id` that is taken.
 */
export async function openInserts(
  app: App,
  place: WriteTarget,
  documents: readonly StoredDocument[],
): Promise<DecidedWrite[]> {
  const { collection, writer } = place;
  const folded = documents.map((document) => withFolded(collection, document));
  await requireRoomFor(app, collection.projectId, { documents: folded });
  const sets = writer?.hasSets ? await writer.openSets() : null;
  const named = new Set(documents.flatMap((document) => Object.keys(document)));
  if (place.hooked) for (const name of hookFields(collection)) named.add(name);
  const references = await openReferences(app, { collection, referrer: referrerOf(place), named });
  const writes: DecidedWrite[] = [];
  for (const document of folded) {
    const next = withOutbox(document, await queueEvents(app, collection, 'insert'));
    writes.push({
      ...{ collection, id: document._id, action: 'insert' },
      decide(stored, exists, read) {
        if (writer && sets) {
          const ask = sets(exists);
          if (writer.ownerField === null && !writer.admits('create', document, ask)) throw ruleRefused('create');
          requireSettableInside(collection, writer, document, ask);
        }
        if (document.isDeleted === false) references?.require(null, document, exists, read);
        if (stored) throw duplicateValue(['_id']);
        return next;
      },
      requireFilled(_, filled, exists, read) {
        if (sets && !writer!.admits('create', filled, sets(exists))) throw ruleRefused('create');
        requireCreatable(writer, filled);
        references?.require(null, filled, exists, read);
      },
    });
  }
  return writes;
}

/**
 * Stores a new document, which refers to others with the referrer's rights, or the project's. 409 DUPLICATE_VALUE when
 * a unique value is taken, 400 when an index cannot hold it, or REFERENCE_MISSING, 403 QUOTA_EXCEEDED.
 */
export async function insertDocumentRecord(
  app: App,
  collection: Collection,
  document: StoredDocument,
  referrer: Referrer | null = null,
): Promise<void> {
  const place = { collection, writer: null, ...(referrer && { referrer }) };
  await commitWrites(app, await openInserts(app, place, [document]));
}
