import { type Doc, isDocument, RawDocument } from '../../codec/document.js';
import { encodeDocument } from '../../codec/encode.js';
import { withIdFirst } from '../../codec/raw.js';
import { typeMismatch } from '../../errors.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import { EntryBudget } from '../../storage/keys/entry-budget.js';
import type { Storage } from '../../storage/storage.js';
import { batch, type Call, command, requireNamespace, requireWritable, describeWriteError } from '../command.js';
import { flagOption } from '../options.js';
import type { Inside } from '../transactions.js';

export const insert = command({
  options: { documents: batch, ordered: flagOption(true), bypassDocumentValidation: flagOption(false) },
  async run(call, { documents, ordered, bypassDocumentValidation: isCopy }, target) {
    const ns = requireNamespace(call, target);
    requireWritable(ns);
    const { storage } = call.core;
    const state = { n: 0, errors: [] as Doc[] };
    let at = 0;
    while (at < documents.length) {
      const from = at;
      const step = await storage.queue.write(() => insertSome(storage, ns, documents, from, { ordered, isCopy }));
      at = step.next;
      state.n += step.n;
      state.errors.push(...step.errors);
      if (ordered && state.errors.length > 0) break;
    }
    return state.errors.length === 0 ? { n: state.n } : { n: state.n, writeErrors: state.errors };
  },
});

/** The command as a part of a transaction. */
export function insertInside(call: Call, body: Doc): Inside {
  const { documents, bypassDocumentValidation: isCopy } = insert.read(body, 'insert');
  const ns = requireNamespace(call, body['insert']);
  requireWritable(ns);
  const stored = documents.map(storedForm);
  return (storage) => {
    const budget = new EntryBudget(isCopy ? Infinity : undefined);
    for (const bytes of stored) storage.documents.insert(openCollection(storage, ns), bytes, budget);
    return { n: stored.length };
  };
}

/** Inserts as many documents from `from` on as one transaction should take. `isCopy`: of what was stored already. */
function insertSome(
  storage: Storage,
  ns: string,
  documents: readonly unknown[],
  from: number,
  { ordered, isCopy }: { ordered: boolean; isCopy: boolean },
): { next: number; n: number; errors: Doc[] } {
  const errors: Doc[] = [];
  let next = from;
  let n = 0;
  while (next < documents.length && (next === from || !storage.queue.expired())) {
    try {
      const bytes = storedForm(documents[next]);
      const budget = isCopy ? new EntryBudget(Infinity) : undefined;
      storage.documents.insert(openCollection(storage, ns), bytes, budget);
      n++;
    } catch (error) {
      errors.push(describeWriteError(next, error));
      if (ordered) return { next: next + 1, n, errors };
    }
    next++;
  }
  return { next, n, errors };
}

function storedForm(document: unknown): Buffer {
  if (document instanceof RawDocument) return withIdFirst(document.bytes);
  if (!isDocument(document)) throw typeMismatch("BSON field 'insert.documents' must contain documents");
  return withIdFirst(encodeDocument(document));
}

/** The collection to write to, made when it does not exist yet. Inside a transaction. */
export function openCollection(storage: Storage, ns: string): CollectionEntry {
  return storage.catalog.find(ns) ?? storage.catalog.create(ns);
}
