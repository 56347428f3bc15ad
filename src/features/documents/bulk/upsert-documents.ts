import type { App } from '../../../app.js';
import { AppError, invalid } from '../../../errors.js';
import { isObjectId } from '../../../platform/ids.js';
import type { Collection } from '../../collections/collection.js';
import { comparedPath, comparedValue } from '../../collections/fields/nocase.js';
import type { StoredDocument } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { openInserts } from '../write/insert-document.js';
import { openUpdate, readUpdate } from '../write/update-document.js';
import { commitEach, describeError } from './commit-each.js';
import { type ImportNote, withoutSystemFields } from './imported-document.js';

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
 * as they are. Each value is independent.
 */
export async function upsertEach(
  app: App,
  collection: Collection,
  key: string,
  accepted: readonly Accepted[],
  rejected: ImportOutcome['rejected'],
): Promise<ImportOutcome> {
  const place = { collection, writer: null };
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
    const inserts = await openInserts(
      app,
      place,
      fresh.map(({ document }) => document),
    );
    const writes = inserts.map((write, at) => ({ write, index: fresh[at]!.index }));
    for (const { index, value, document } of first) {
      const id = known.get(keyOf(document));
      if (id === undefined) continue;
      try {
        const read = readUpdate(place, id, withoutSystemFields(value as Record<string, unknown>), app.clock.now());
        writes.push({ write: await openUpdate(app, place, read), index });
      } catch (error) {
        if (!(error instanceof AppError) || error.code === 'QUOTA_EXCEEDED') throw error;
        rejected.push({ index, message: error.message });
      }
    }
    const refused = await commitEach(
      app,
      writes.map(({ write }) => write),
    );
    for (const [at, { write, index }] of writes.entries()) {
      const error = refused.get(at);
      if (error) rejected.push({ index, message: write.action === 'insert' ? describeError(error) : error.message });
      else outcome[write.action === 'insert' ? 'inserted' : 'updated'] += 1;
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
