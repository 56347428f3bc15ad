import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { storeOf } from '../../../platform/database/store-of.js';
import { HIDDEN_FIELD } from '../fields/field.js';

/**
 * The bulk inserts of a collection in a database that cannot store several documents at once (a MongoDB). Each has a
 * number, which its documents bear, and is hidden until one write takes it out of `hidden`. A reader who reads this
 * first sees each batch as a whole or not at all, whatever happens during it: batches that were hidden then, or began
 * later, are left out.
 */
export interface InsertSeries {
  /** The collection. */
  _id: ObjectId;
  projectId: ObjectId;
  /** The number of the next batch, from 1. */
  next: number;
  hidden: HiddenBatch[];
}

/**
 * open: its documents are being written. abandoned: its writer is gone, its documents are removed; it never becomes
 * visible.
 */
export interface HiddenBatch {
  number: number;
  /** The id of its first document, so that a repeated request meets its own first attempt. */
  batch: ObjectId;
  ids: ObjectId[];
  state: 'open' | 'abandoned';
  at: Date;
}

/** The path at which a document of a bulk insert bears the number of its batch. */
export const BATCH_NUMBER = `${HIDDEN_FIELD}.batch`;

/** A reader's knowledge of a series. */
export interface KnownSeries {
  next: number;
  hidden: readonly number[];
}

export const SERIES = 'insert_series';

export const seriesStore = storeOf<InsertSeries>(SERIES);

export async function readSeries(app: Pick<App, 'db'>, collectionId: ObjectId): Promise<KnownSeries> {
  const projection = { next: 1, 'hidden.number': 1 };
  const found = await seriesStore(app).findOne({ _id: collectionId }, { projection });
  return { next: found?.next ?? 1, hidden: (found?.hidden ?? []).map(({ number }) => number) };
}

/** True if a document, as stored, stood when `known` was read; null = when the collection had no batch yet. */
export function isShown(document: Record<string, unknown>, known: KnownSeries | null): boolean {
  const { batch } = (document[HIDDEN_FIELD] ?? {}) as { batch?: unknown };
  if (batch === undefined) return true;
  const number = Number(batch);
  return known !== null && number < known.next && !known.hidden.includes(number);
}

/** A filter for what does not belong to a batch that was hidden when `known` was read. */
export function shownBy({ next, hidden }: KnownSeries): Record<string, unknown> {
  return { [BATCH_NUMBER]: { $not: { $gte: next }, ...(hidden.length > 0 && { $nin: hidden }) } };
}

/** shownBy as of this moment; leaves out nothing where documents of a batch appear at once. */
export async function findShown(app: Pick<App, 'db'>, collectionId: ObjectId): Promise<Record<string, unknown>> {
  return (await mayHide(app)) ? shownBy(await readSeries(app, collectionId)) : {};
}

const LOOK_MS = 1_000;
const looks = new WeakMap<App['db'], { hides: boolean; until: number }>();

/**
 * True if documents of this store may belong to a hidden batch. An embedded store has such batches only when clients of
 * its wire transport write to it, or when it was restored from a MongoDB; it notices within a second.
 */
export function mayHide({ db }: Pick<App, 'db'>): boolean | Promise<boolean> {
  if (!db.insertTogether) return true;
  const look = looks.get(db);
  if (look && (look.hides || performance.now() < look.until)) return look.hides;
  return lookForSeries(db);
}

async function lookForSeries(db: App['db']): Promise<boolean> {
  const hides = (await seriesStore({ db }).findOne({}, { projection: { _id: 1 } })) !== null;
  looks.set(db, { hides, until: performance.now() + LOOK_MS });
  return hides;
}
