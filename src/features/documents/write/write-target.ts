import type { Document, ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, forbidden, invalid, missing, type AppError } from '../../../errors.js';
import { findObjectId } from '../../../platform/ids.js';
import { requireWriter, type Writer } from '../../access/access-rules.js';
import type { Caller } from '../../access/caller.js';
import type { StoredBeside } from '../../access/rules/caller-sets.js';
import { NOTHING } from '../../access/rules/compile-rule.js';
import type { Collection } from '../../collections/collection.js';
import { requireCollection } from '../../collections/collection-store.js';
import type { StoredDocument } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { matchShown } from '../store/shown-documents.js';
import { requireVersion, versionFilter, type ExpectedVersion } from './if-match.js';
import { filtersAfter, filtersBefore, readableFilter, ruleRefused, type RuledAction } from './admit-write.js';
import type { ChangedFields } from './document-change.js';
import { settlePlace, type SettledPlace } from './settle-place.js';

/** The place of a write and its writer. */
export interface WriteTarget {
  collection: Collection;
  writer: Writer;
}

/**
 * The collection a caller may write to: 404 for an unknown one, 403 or 401 when this caller may not write at all
 * (rest-api.md 5).
 */
export async function requireWriteTarget(
  app: App,
  caller: Caller,
  collectionName: string,
  beside?: StoredBeside,
): Promise<WriteTarget> {
  const collection = await requireCollection(app, caller.project._id, collectionName);
  return { collection, writer: await requireWriter(app, collection, caller, beside) };
}

/** 400 INVALID_ID for anything but 24 hexadecimal digits. */
export function requireDocumentId(text: string): ObjectId {
  const id = findObjectId(text);
  if (!id) throw invalid('INVALID_ID', 'A document id has 24 hexadecimal digits');
  return id;
}

const MAX_ATTEMPTS = 5;

/**
 * The result of a conditional write. When it matches nothing (null), `explain` throws the reason found in the stored
 * document; without a reason the document has changed and the write is tried again. 409 DOCUMENT_CHANGING after five
 * times.
 */
async function writeOrExplain<T>(write: () => Promise<T | null>, explain: () => Promise<unknown>): Promise<T> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const written = await write();
    if (written !== null) return written;
    await explain();
  }
  throw conflict('DOCUMENT_CHANGING', 'The document is being changed by others: try again', { retryAfterSeconds: 1 });
}

/** The active document as a writer may see it who has changed it before; 404 when that may be no more. */
export async function readWritten(app: App, place: WriteTarget, id: ObjectId): Promise<StoredDocument> {
  const settled = await settlePlace(app, place, { _id: id }, null);
  const readable = settled && readableFilter(settled.writer);
  const filter = matching({ _id: id, isDeleted: false }, readable ? [readable] : []);
  const found = settled && (await documentStore(app, place.collection).findOne(filter));
  if (!found) throw documentNotFound();
  return found;
}

/**
 * Reads the document that a write did not match: throws 404 when it is not in that state or not readable, 403 when it
 * is someone else's or the rule of the write does not admit it; else answers it as it is now. Null when it holds
 * something else since than what the writer was settled for.
 */
export async function explainMiss(
  app: App,
  { collection, writer, held }: SettledPlace,
  state: Record<string, unknown>,
  { action, change }: RuledWrite,
  notFound: () => AppError = documentNotFound,
): Promise<StoredDocument | null> {
  const find = (filters: readonly Document[]): Promise<StoredDocument | null> =>
    matchShown(
      app,
      collection,
      async (shown) =>
        await documentStore(app, collection).findOne({ ...matching(state, [...held, ...filters]), ...shown }),
    );
  // The filters of a settled writer say nothing of another document than the one that it was settled for.
  const refused = async (error: AppError): Promise<null> => {
    if (held.length === 0 || (await find([]))) throw error;
    return null;
  };
  const readable = readableFilter(writer);
  const found = await find(readable ? [readable] : []);
  if (!found) return refused(notFound());
  if (!writer) return found;
  if (writer.ownerField !== null) {
    if (found[writer.ownerField] === writer.userId) return found;
    throw forbidden('OWNER_MISMATCH', 'The document belongs to another user');
  }
  if (!(await find(filtersBefore(writer, action)))) {
    // Of the trash only those know who may fill it.
    const isKnown = found.isDeleted === false || (await find(filtersBefore(writer, 'delete')));
    return refused(isKnown ? ruleRefused(action, 'before') : notFound());
  }
  const after = change ? filtersAfter(writer, change) : [];
  const isAdmitted = after !== null && (after.length === 0 || (await find(after)));
  return isAdmitted ? found : refused(ruleRefused(action, 'after'));
}

/** What rules ask of a write; the change where it changes anything that a rule could name. */
export interface RuledWrite {
  action: RuledAction;
  change?: ChangedFields;
}

/** A state with further conditions. */
export function matching<S extends Record<string, unknown>>(state: S, filters: readonly Document[]): S {
  return filters.length > 0 ? { ...state, $and: filters } : state;
}

/** What the rules ask of a document for a write, as parts of the write's own filter. */
export function ruledFilters({ writer, held }: SettledPlace, { action, change }: RuledWrite): Document[] {
  const after = change ? filtersAfter(writer, change) : [];
  return [...held, ...new Set([...filtersBefore(writer, action), ...(after ?? [NOTHING])])];
}

/**
 * A write by somebody who may of the document in `state`, tried again while others change it. What the document must
 * meet is part of the write itself, so that nothing can happen between check and write. Throws what explainMiss does;
 * `explain` is given the stored document where that has nothing to say.
 */
export function writeRuled<T>(
  app: App,
  place: WriteTarget,
  state: Record<string, unknown>,
  { notFound = documentNotFound, ...ruled }: RuledWrite & { notFound?: () => AppError },
  write: (filters: readonly Document[]) => Promise<T | null>,
  explain: (found: StoredDocument) => unknown,
): Promise<T> {
  let settled: SettledPlace | null = null;
  return writeOrExplain(
    async () => {
      settled = await settlePlace(app, place, state, ruled.change ?? null);
      if (!settled) throw notFound();
      return write(ruledFilters(settled, ruled));
    },
    async () => {
      const found = await explainMiss(app, settled!, state, ruled, notFound);
      if (found) await explain(found);
    },
  );
}

/** writeRuled in the expected version: 412 CHANGED_MEANWHILE for another one. */
export function writeInState<T, S extends Record<string, unknown>>(
  app: App,
  place: WriteTarget,
  state: S,
  { expected, ...ruled }: RuledWrite & { expected: ExpectedVersion; notFound?: () => AppError },
  write: (filter: S) => Promise<T | null>,
): Promise<T> {
  const inVersion = { ...state, ...versionFilter(expected) };
  return writeRuled(
    app,
    place,
    state,
    ruled,
    (filters) => write(matching(inVersion, filters)),
    (found) => requireVersion(found, expected),
  );
}

export function documentNotFound(): AppError {
  return missing('DOCUMENT_NOT_FOUND', 'There is no document with this id in the collection');
}
