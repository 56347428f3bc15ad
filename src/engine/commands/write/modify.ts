import { decodeDocument } from '../../codec/decode.js';
import type { Doc } from '../../codec/document.js';
import { encodeDocument } from '../../codec/encode.js';
import { changedNames, spliceDocument } from '../../codec/splice.js';
import { ObjectId } from '../../codec/bson.js';
import { EngineError, immutableField } from '../../errors.js';
import { idCondition } from '../../planner/remembered-plan.js';
import { keep } from '../../planner/scans/scan.js';
import type { Filter } from '../../query/match/match.js';
import type { KeyTuple } from '../../query/sort.js';
import type { Update } from '../../query/update/update.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import { openCollection } from './insert.js';
import type { Pace } from '../pace.js';
import { readById } from '../read/point-read.js';
import { checkStillThere, openScan, planQuery, type Query } from '../read/query.js';

/** How many entries a search inside a write transaction may look at before it is done outside instead. */
const SEARCHED_INSIDE = 256;
/**
 * After this number it also asks whether the transaction, for which other processes may be waiting, has lasted long
 * enough.
 */
const SEARCH_STEP = 64;
/** How many documents found outside, and how many bytes of them, are then changed in one go. */
const CANDIDATES = 256;
const CANDIDATE_BYTES = 4 * 1024 * 1024;

/** The change of the documents that match. */
export interface Modification {
  readonly filter: Doc;
  readonly query: Query;
  /** Null: delete. */
  readonly update: Update | null;
  readonly upsert: boolean;
  /** Of one that may be carried out several times, with the same outcome. */
  readonly moment?: { readonly now: Date; readonly newId: ObjectId };
}

/** The change as one of a transaction, which repeats it. */
export function atOneMoment(modification: Modification): Modification {
  return { ...modification, moment: { now: new Date(), newId: new ObjectId() } };
}

/** The result for one document. */
export interface Modified {
  before: Buffer | null;
  after: Buffer | null;
  changed: boolean;
  upsertedId?: unknown;
}

/** A document found by a search outside of a transaction. */
interface Found {
  bytes: Buffer;
  keys: KeyTuple | null;
}

export const LATER = Symbol('search outside the transaction');

/**
 * Changes the first matching document, atomically: what is changed still matches. With `upsert` a new document when
 * nothing matches; null when nothing matched. The search runs inside the transaction as long as it is short.
 */
export async function modifyOne(
  storage: Storage,
  ns: string,
  modification: Modification,
  pace: Pace,
): Promise<Modified | null> {
  for (;;) {
    const inside = await storage.queue.write(() => modifyInside(storage, ns, modification));
    if (inside !== LATER) return inside;
    pace.resume();
    const found = await findOutside(storage, ns, modification.query, pace);
    const outside = await storage.queue.write(() => {
      const collection = storage.catalog.find(ns);
      if (found === null || collection === null) {
        return modification.upsert ? insertUpsert(storage, ns, modification) : null;
      }
      return modifyFound(storage, collection, found.bytes, modification) ?? LATER;
    });
    // Somebody else changed the document in between, so that it does not match any more: look for the next one.
    if (outside !== LATER) return outside;
    pace.check();
  }
}

/**
 * modifyOne inside a transaction that is under way; LATER when the search would take too long for it: looks at more
 * than `most` entries.
 */
function modifyInside(
  storage: Storage,
  ns: string,
  modification: Modification,
  most = SEARCHED_INSIDE,
): Modified | null | typeof LATER {
  const collection = storage.catalog.find(ns);
  if (collection !== null) {
    const found = findInside(storage, collection, modification.query, most);
    if (found === LATER) return LATER;
    if (found !== null) return apply(storage, collection, found.bytes, modification);
  }
  return modification.upsert ? insertUpsert(storage, ns, modification) : null;
}

/** modifyOne inside a transaction that is under way, however long the search takes. */
export function modifyOneInside(storage: Storage, ns: string, modification: Modification): Modified | null {
  return modifyInside(storage, ns, modification, Infinity) as Modified | null;
}

/** The first document that a query matches, inside a transaction; LATER when the search would take too long for it. */
export function findInside(
  storage: Storage,
  collection: CollectionEntry,
  query: Query,
  most = SEARCHED_INSIDE,
): Found | null | typeof LATER {
  const id = query.hint === undefined && query.collation === null ? idCondition(query.filter) : undefined;
  const known = id && findById(storage, collection, query.filter, id);
  if (known !== undefined) return known;
  const plan = planQuery(storage, collection, query, 1);
  const { sort } = query;
  const collect = sort !== null && !plan.sorted;
  const scan = openScan(storage, collection, plan, query, collect ? sort.fields : undefined);
  let best: Found | null = null;
  const visit = (bytes: Buffer, doc: Doc): boolean => {
    best = collect ? better(best, bytes, sort.keysOf(doc), sort.compareKeys) : { bytes: keep(bytes), keys: null };
    return !collect;
  };
  do {
    if (scan.readChunk(visit, SEARCH_STEP) || scan.finished) return best;
  } while (most === Infinity || (scan.keysExamined < most && !storage.queue.expired()));
  return LATER;
}

/** Changes every matching document, inside a transaction that is under way; inserts none. */
export function modifyAllInside(storage: Storage, ns: string, modification: Modification): ModifiedMany {
  const result: ModifiedMany = { matched: 0, changed: 0 };
  const collection = storage.catalog.find(ns);
  if (collection === null) return result;
  const { query } = modification;
  const scan = openScan(storage, collection, planQuery(storage, collection, query, 0), query);
  const found: Buffer[] = [];
  while (!scan.finished) {
    scan.readChunk((bytes) => {
      found.push(keep(bytes));
      return false;
    });
  }
  for (const bytes of found) {
    const { changed } = apply(storage, collection, bytes, modification);
    result.matched++;
    if (changed) result.changed++;
  }
  return result;
}

/** The document of an `_id` if the filter, which asks for it, admits it; undefined where keys do not tell it. */
function findById(
  storage: Storage,
  collection: CollectionEntry,
  filter: Filter,
  id: { readonly value: unknown },
): Found | null | undefined {
  const bytes = readById(storage, collection, id.value);
  if (!bytes) return bytes;
  const admits = filter.testBytes(bytes) ?? filter.matches(decodeDocument(bytes, 'engine', filter.fields ?? undefined));
  return admits ? { bytes: keep(bytes), keys: null } : null;
}

function better(
  best: Found | null,
  bytes: Buffer,
  keys: KeyTuple,
  compare: (a: KeyTuple, b: KeyTuple) => number,
): Found {
  if (best !== null && compare(keys, best.keys!) >= 0) return best;
  return { bytes: keep(bytes), keys };
}

async function findOutside(storage: Storage, ns: string, query: Query, pace: Pace): Promise<Found | null> {
  storage.refresh();
  const collection = storage.catalog.find(ns);
  if (collection === null) return null;
  const plan = planQuery(storage, collection, query, 1);
  const { sort } = query;
  const collect = sort !== null && !plan.sorted;
  const scan = openScan(storage, collection, plan, query, collect ? sort.fields : undefined);
  let best: Found | null = null;
  while (!scan.finished) {
    const stopped = scan.readChunk((bytes, doc) => {
      best = collect ? better(best, bytes, sort.keysOf(doc), sort.compareKeys) : { bytes: keep(bytes), keys: null };
      return !collect;
    });
    if (stopped) break;
    if (pace.due(scan.lastRead)) {
      await pace.rest();
      checkStillThere(storage, collection, plan);
    }
  }
  return best;
}

/** Changes a document found earlier if it is still there and still matches, else null. */
function modifyFound(
  storage: Storage,
  collection: CollectionEntry,
  earlier: Buffer,
  modification: Modification,
): Modified | null {
  const current = storage.documents.read(collection, storage.documents.encodeIdOf(earlier));
  if (current === undefined) return null;
  if (!current.equals(earlier) && !modification.query.filter.matches(decodeDocument(current))) return null;
  return apply(storage, collection, current, modification);
}

/** Changes the stored document `before`, which matches. Inside a transaction. */
function apply(storage: Storage, collection: CollectionEntry, before: Buffer, modification: Modification): Modified {
  const { update, query, moment } = modification;
  const { documents } = storage;
  if (update === null) {
    documents.delete(collection, documents.encodeIdOf(before), before);
    return { before, after: null, changed: true };
  }
  // What matched decides what `$` stands for, and any field may have.
  const touched = update.positional ? null : update.touches;
  const doc = decodeDocument(before, 'engine', touched ?? undefined);
  const arrayIndex = update.positional ? query.filter.match(doc)?.arrayIndex : undefined;
  const updated = update.apply(doc, { arrayIndex, inserting: false, now: moment?.now ?? new Date() });
  if (!updated.changed) return { before, after: before, changed: false };
  const after =
    touched === null
      ? encodeDocument(updated.doc, doc['_id'])
      : spliceDocument(before, updated.doc, changedNames(doc, updated.doc));
  if (after.equals(before)) return { before, after: before, changed: false };
  documents.replace(collection, documents.encodeIdOf(before), before, after, touched);
  return { before, after, changed: true };
}

function insertUpsert(storage: Storage, ns: string, { filter, update, moment }: Modification): Modified {
  const doc = update!.upsert(filter, { inserting: true, now: moment?.now ?? new Date() });
  const id = doc['_id'] === undefined ? (moment?.newId ?? new ObjectId()) : doc['_id'];
  const after = encodeDocument(doc, id);
  storage.documents.insert(openCollection(storage, ns), after);
  return { before: null, after, changed: true, upsertedId: id };
}

/** The outcome of changing many documents. */
export interface ModifiedMany {
  matched: number;
  changed: number;
  upsertedId?: unknown;
}

/**
 * Changes every matching document, in batches: each document atomically, the whole not. A document that is changed so
 * that it moves ahead in the index that is read is not changed twice.
 */
export async function modifyMany(
  storage: Storage,
  ns: string,
  modification: Modification,
  pace: Pace,
): Promise<ModifiedMany> {
  storage.refresh();
  const result: ModifiedMany = { matched: 0, changed: 0 };
  const collection = storage.catalog.find(ns);
  try {
    if (collection !== null) await modifyMatching(storage, collection, modification, pace, result);
  } catch (error) {
    throw error instanceof EngineError ? new PartlyModified(result, error) : error;
  }
  if (result.matched > 0 || !modification.upsert) return result;
  const single = await modifyOne(storage, ns, modification, pace);
  if (single === null) return result;
  if (single.before === null) return { ...result, upsertedId: single.upsertedId };
  return { matched: 1, changed: single.changed ? 1 : 0 };
}

async function modifyMatching(
  storage: Storage,
  collection: CollectionEntry,
  modification: Modification,
  pace: Pace,
  result: ModifiedMany,
): Promise<void> {
  const { query } = modification;
  const plan = planQuery(storage, collection, query, 0);
  const scan = openScan(storage, collection, plan, query);
  // Entries can only move when an index is read; documents stay where their `_id` puts them, and deleted ones are gone.
  const done =
    (plan.index === null && plan.branches === null) || modification.update === null ? null : new Set<string>();
  while (!scan.finished) {
    const found: Buffer[] = [];
    let size = 0;
    const visit = (bytes: Buffer): boolean => {
      found.push(keep(bytes));
      size += bytes.length;
      return size >= CANDIDATE_BYTES;
    };
    let full: boolean;
    do {
      full = scan.readChunk(visit);
    } while (!full && !scan.finished && found.length < CANDIDATES && !pace.due(scan.lastRead));
    let at = 0;
    while (at < found.length) {
      const from = at;
      const step = await storage.queue.write(() => modifySome(storage, collection.ns, found, from, modification, done));
      at = step.next;
      result.matched += step.matched;
      result.changed += step.changed;
      if (step.error !== undefined) throw step.error;
      if (done !== null) for (const id of step.ids) done.add(id);
    }
    if (scan.finished) break;
    await pace.rest();
    checkStillThere(storage, collection, plan);
  }
}

/**
 * A refusal in the middle of changing many documents, or the end of their time: what was changed before stays changed.
 */
export class PartlyModified extends Error {
  constructor(
    readonly result: ModifiedMany,
    override readonly cause: EngineError,
  ) {
    super('refused in the middle of changing many documents');
  }
}

interface Step {
  next: number;
  matched: number;
  changed: number;
  ids: string[];
  error?: EngineError;
}

function modifySome(
  storage: Storage,
  ns: string,
  found: readonly Buffer[],
  from: number,
  modification: Modification,
  done: ReadonlySet<string> | null,
): Step {
  const step: Step = { next: from, matched: 0, changed: 0, ids: [] };
  while (step.next < found.length && (step.next === from || !storage.queue.expired())) {
    const collection = storage.catalog.find(ns);
    if (collection === null) return { ...step, next: found.length };
    const bytes = found[step.next]!;
    const id = done === null ? '' : storage.documents.encodeIdOf(bytes).latin1Slice();
    step.next++;
    if (done !== null && (done.has(id) || step.ids.includes(id))) continue;
    try {
      const modified = modifyFound(storage, collection, bytes, modification);
      if (modified === null) continue;
      step.matched++;
      if (modified.changed) step.changed++;
      if (done !== null) step.ids.push(id);
    } catch (error) {
      // A refusal comes before the first change of its document; after anything else the transaction must not be
      // committed.
      if (!(error instanceof EngineError)) throw error;
      return { ...step, error };
    }
  }
  return step;
}

/** Refuses what a `multi` update may not be. */
export function checkMulti(update: Update | null): void {
  if (update?.kind === 'replacement') {
    throw immutableField('multi update is not supported for replacement-style update');
  }
}
