import type { App } from '../../../app.js';
import { AppError, invalid } from '../../../errors.js';
import { isObjectId } from '../../../platform/ids.js';
import type { Collection } from '../../collections/collection.js';
import { comparedPath, comparedValue } from '../../collections/fields/nocase.js';
import type { StoredDocument } from '../store/document.js';
import { documentStore, insertEachRecord } from '../store/document-store.js';
import { updateDocument } from '../write/update-document.js';
import type { ImportNote } from './import-notes.js';
import { withoutSystemFields } from './imported-document.js';

export interface ImportOutcome {
  inserted: number;
  /** With a key: found by it and changed. */
  updated?: number;
  /** Left as they are: documents of their ids are there already. */
  present?: number;
  /** Which of the values were refused and why, in order. */
  rejected: { index: number; message: string }[];
  /** What was stored as something else than it was, or left out: by field, with the first of the values. */
  notes?: ImportNote[];
}

/** A value of an import that fits its collection. */
export interface Accepted {
  index: number;
  value: unknown;
  document: StoredDocument;
}

/** 400 INVALID_KEY unless every value of the field names at most one document. */
export function requireKeyField({ name, mode, fields }: Collection, key: string): void {
  const field = fields.find((candidate) => candidate.name === key);
  if (key === '_id' || (mode === 'enforced' && field?.unique)) return;
  throw invalid(
    'INVALID_KEY',
    `"${key}" is not a unique field of ${name}: only such a field, or _id, names one document`,
  );
}

/**
 * Changes the documents that have the same value of `key`, and stores the others. Fields that a value leaves out stay
 * as they are. Each value stands for itself.
 */
export async function upsertEach(
  app: App,
  collection: Collection,
  key: string,
  accepted: readonly Accepted[],
  rejected: ImportOutcome['rejected'],
): Promise<ImportOutcome> {
  const outcome = { inserted: 0, updated: 0, rejected };
  const keyOf = (document: StoredDocument): string => textOf(comparedValue(collection, key, document[key]))!;
  let waiting = accepted.filter(({ index, document }) => {
    if (textOf(document[key]) !== null) return true;
    rejected.push({ index, message: `${key} is missing: it tells which document is meant` });
    return false;
  });
  while (waiting.length > 0) {
    const { first, again } = splitRepeated(waiting, keyOf);
    const known = await findIds(app, collection, key, first, keyOf);
    const fresh = first.filter(({ document }) => !known.has(keyOf(document)));
    const added = fresh.map(({ document }) => document);
    const refusals = added.length === 0 ? new Map<number, string>() : await insertEachRecord(app, collection, added);
    for (const [position, message] of refusals) rejected.push({ index: fresh[position]!.index, message });
    outcome.inserted += fresh.length - refusals.size;
    for (const { index, value, document } of first) {
      const id = known.get(keyOf(document));
      if (id === undefined) continue;
      try {
        await updateDocument(
          app,
          { collection, writer: null },
          id,
          withoutSystemFields(value as Record<string, unknown>),
        );
        outcome.updated += 1;
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        rejected.push({ index, message: error.message });
      }
    }
    // A later line of the file about the same document comes after the earlier one.
    waiting = again;
  }
  rejected.sort((a, b) => a.index - b.index);
  return outcome;
}

type KeyOf = (document: StoredDocument) => string;

function splitRepeated(waiting: readonly Accepted[], keyOf: KeyOf): { first: Accepted[]; again: Accepted[] } {
  const seen = new Set<string>();
  const first: Accepted[] = [];
  const again: Accepted[] = [];
  for (const each of waiting) {
    const text = keyOf(each.document);
    (seen.has(text) ? again : first).push(each);
    seen.add(text);
  }
  return { first, again };
}

/** Ids of the active documents that have one of the values, by that value. */
async function findIds(
  app: App,
  collection: Collection,
  key: string,
  accepted: readonly Accepted[],
  keyOf: KeyOf,
): Promise<Map<string, string>> {
  const values = accepted.map(({ document }) => comparedValue(collection, key, document[key]));
  const found = documentStore(app, collection)
    .find({ [comparedPath(collection, key)]: { $in: values }, isDeleted: false })
    .project({ _id: 1, [key]: 1 });
  const documents = (await found.toArray()) as StoredDocument[];
  return new Map(documents.map((document) => [keyOf(document), document._id.toHexString()]));
}

/** A key's value as text; null for what cannot name a document. */
function textOf(value: unknown): string | null {
  if (isObjectId(value)) return value.toHexString();
  if (value instanceof Date) return value.toISOString();
  return ['string', 'number', 'boolean'].includes(typeof value) ? `${typeof value} ${String(value)}` : null;
}
