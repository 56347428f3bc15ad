import type { Document, ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, forbidden, invalid, missing, type AppError } from '../../../errors.js';
import { findObjectId } from '../../../platform/ids.js';
import { requireWriter, type Writer } from '../../access/access-rules.js';
import type { Caller } from '../../access/caller.js';
import type { StoredBeside } from '../../access/rules/caller-sets.js';
import { requireCollection } from '../../collections/collection-store.js';
import type { StoredDocument } from '../store/document.js';
import { requireVersion, versionFilter, type ExpectedVersion } from './if-match.js';
import { filtersAfter, filtersBefore, readableFilter, ruleRefused, type RuledAction } from './admit-write.js';
import { settlePlace, type SettledPlace, type UnsettledPlace } from './settle-place.js';
import { findMoment, type StoredMoment } from './stored-moment.js';

/** The place of a write and its writer. */
export type WriteTarget = UnsettledPlace;

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
 * What an attempt comes to; null for one that others came between, which is made again. 409 DOCUMENT_CHANGING after
 * five.
 */
async function untilSettled<T>(attempt: () => Promise<{ settled: T } | null>): Promise<T> {
  for (let made = 0; made < MAX_ATTEMPTS; made++) {
    const found = await attempt();
    if (found) return found.settled;
  }
  throw conflict('DOCUMENT_CHANGING', 'The document is being changed by others: try again', { retryAfterSeconds: 1 });
}

/**
 * The document in a state as its writer may see it, who has changed it before: null where that may be no more, or where
 * there is none. 409 DOCUMENT_CHANGING as for a write.
 */
export function findReadable(
  app: App,
  place: WriteTarget,
  state: Record<string, unknown>,
): Promise<StoredDocument | null> {
  return untilSettled(async () => {
    const settled = await settlePlace(app, place, state);
    const moment = await findMoment(app, place.collection, state);
    if (!moment) return { settled: null };
    if (!settled.held.every(moment.meets)) return null;
    return { settled: isReadable(settled.writer, moment) ? moment.document : null };
  });
}

/** findReadable of an active document; 404 in place of null. */
export async function readWritten(app: App, place: WriteTarget, id: ObjectId): Promise<StoredDocument> {
  const found = await findReadable(app, place, { _id: id, isDeleted: false });
  if (!found) throw documentNotFound();
  return found;
}

/**
 * Reads the document that a write did not match, once: throws 404 when it is not in that state or not readable, 403
 * when it is someone else's or the rule of the write does not admit it; else answers it as it is at that moment. Null
 * when it holds something else by then than what the writer was settled for.
 */
export async function explainMiss(
  app: App,
  { collection, writer, held }: SettledPlace,
  state: Record<string, unknown>,
  { action }: RuledWrite,
  notFound: () => AppError = documentNotFound,
  read: () => Promise<StoredMoment | null> = () => findMoment(app, collection, state),
): Promise<StoredMoment | null> {
  const moment = await read();
  if (!moment) throw notFound();
  const { document, meets } = moment;
  // The filters of a settled writer say nothing of another document than the one that it was settled for.
  if (!held.every(meets)) return null;
  if (!isReadable(writer, moment)) throw notFound();
  if (!writer) return moment;
  if (writer.ownerField !== null) {
    if (document[writer.ownerField] === writer.userId) return moment;
    throw forbidden('OWNER_MISMATCH', 'The document belongs to another user');
  }
  if (!filtersBefore(writer, action).every(meets)) {
    // Of the trash only those know who may fill it.
    const isKnown = document.isDeleted === false || filtersBefore(writer, 'delete').every(meets);
    throw isKnown ? ruleRefused(action, 'before') : notFound();
  }
  if (action === 'update' && !filtersAfter(writer).every(meets)) throw ruleRefused(action, 'after');
  return moment;
}

function isReadable(writer: Writer, { meets }: StoredMoment): boolean {
  const readable = readableFilter(writer);
  return readable === null || meets(readable);
}

/** What rules ask of a write; of an update also that the document is admitted afterwards, whose fields stay. */
export interface RuledWrite {
  action: RuledAction;
}

/** A state with further conditions. */
export function matching<S extends Record<string, unknown>>(state: S, filters: readonly Document[]): S {
  return filters.length > 0 ? { ...state, $and: filters } : state;
}

/** What the rules ask of a document for a write, as parts of the write's own filter. */
export function ruledFilters({ writer, held }: SettledPlace, { action }: RuledWrite): Document[] {
  const after = action === 'update' ? filtersAfter(writer) : [];
  return [...held, ...new Set([...filtersBefore(writer, action), ...after])];
}

/**
 * The place of one attempt of a write. What there is to say of the writer whatever is stored comes first: else it would
 * tell which documents there are.
 */
export async function settleWrite(
  app: App,
  place: WriteTarget,
  state: Record<string, unknown>,
  { action }: RuledWrite,
): Promise<SettledPlace> {
  if (place.writer?.settledBy) {
    filtersBefore(place.writer, action);
    if (action === 'update') place.writer.compiled('updateTo');
  }
  return settlePlace(app, place, state);
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
  explain: (found: StoredMoment) => unknown,
): Promise<T> {
  return untilSettled(async () => {
    const settled = await settleWrite(app, place, state, ruled);
    const written = await write(ruledFilters(settled, ruled));
    if (written !== null) return { settled: written };
    const found = await explainMiss(app, settled, state, ruled, notFound);
    if (found) await explain(found);
    return null;
  });
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
    ({ document }) => requireVersion(document, expected),
  );
}

export function documentNotFound(): AppError {
  return missing('DOCUMENT_NOT_FOUND', 'There is no document with this id in the collection');
}
