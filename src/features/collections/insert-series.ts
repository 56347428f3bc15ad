import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import type { Store } from '../../platform/database.js';
import { HIDDEN_FIELD } from './field.js';

/**
 * The bulk inserts of a collection in a database that cannot store several documents at once (a MongoDB). Each has a number, which its documents
 * bear, and is hidden until one write takes it out of `hidden`. A reader who reads this first sees each batch as a whole or not at all, whatever
 * happens meanwhile: batches that were hidden then, or began later, are left out.
 */
export interface InsertSeries {
  /** The collection. */
  _id: ObjectId;
  projectId: ObjectId;
  /** The number of the next batch, from 1. */
  next: number;
  hidden: HiddenBatch[];
}

/** open: its documents are being written. abandoned: its writer is gone, its documents are removed; it never becomes visible. */
export interface HiddenBatch {
  number: number;
  /** The id of its first document, so that a repeated request meets its own first attempt. */
  batch: ObjectId;
  ids: ObjectId[];
  state: 'open' | 'abandoned';
  at: Date;
}

/** Where a document of a bulk insert bears the number of its batch. */
export const BATCH_NUMBER = `${HIDDEN_FIELD}.batch`;

/** What a reader knows of a series. */
export interface KnownSeries {
  next: number;
  hidden: readonly number[];
}

export function seriesStore(app: Pick<App, 'db'>): Store<InsertSeries> {
  return app.db.collection<InsertSeries>('insert_series');
}

export async function readSeries(app: Pick<App, 'db'>, collectionId: ObjectId): Promise<KnownSeries> {
  const projection = { next: 1, 'hidden.number': 1 };
  const found = (await seriesStore(app).findOne({ _id: collectionId }, { projection })) as InsertSeries | null;
  return { next: found?.next ?? 1, hidden: (found?.hidden ?? []).map(({ number }) => number) };
}

/** A filter for what does not belong to a batch that was hidden when `known` was read. */
export function shownBy({ next, hidden }: KnownSeries): Record<string, unknown> {
  return { [BATCH_NUMBER]: { $not: { $gte: next }, ...(hidden.length > 0 && { $nin: hidden }) } };
}

/** As shownBy, of this moment; nothing to leave out where documents of a batch appear at once. */
export async function findShown(app: Pick<App, 'db'>, collectionId: ObjectId): Promise<Record<string, unknown>> {
  return app.db.insertTogether ? {} : shownBy(await readSeries(app, collectionId));
}
