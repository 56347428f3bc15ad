import type { Doc, RawDocument } from '../../codec/document.js';
import type { Call } from '../command.js';
import { openPace, TOO_LONG_HERE } from '../pace.js';
import { countNow } from './count.js';
import { FindRows } from './find-rows.js';
import { compileQuery } from './query.js';

/** What a page is asked for; no more than `limit` documents. */
export interface AskedPage {
  readonly filter: Doc;
  readonly sort: Readonly<Record<string, 1 | -1>>;
  readonly skip: number;
  readonly limit: number;
  /** The bytes that its documents may have. */
  readonly mostBytes: number;
}

/** Documents, and how many the filter finds in all. */
export interface FoundPage {
  readonly rows: Buffer[];
  readonly total: number;
}

/** A page of documents with its total, of one moment, by one command instead of `find` and `count`. */
export const pageRead = {
  /**
   * What the two would answer. Undefined where the turn of the event loop in which it begins is too short for it, or
   * the documents are larger than asked for. Throws as they do.
   */
  run(call: Call, name: string, { filter, sort, skip, limit, mostBytes }: AskedPage): FoundPage | undefined {
    const { storage, commandCounts } = call.core;
    const ns = `${call.db}.${name}`;
    try {
      storage.refresh();
      const collection = storage.catalog.find(ns);
      if (collection === null) return { rows: [], total: 0 };
      const query = compileQuery(filter, sort);
      const pace = openPace(call, undefined);
      const options = { skip, limit, batchBytes: mostBytes, projection: null, positional: false };
      const found = new FindRows(storage, collection, query, options, pace).readNow();
      if (found === null) return undefined;
      const rows = found.map((row) => (row as RawDocument).bytes);
      // A page that is not full is the last one, and gives the total without counting.
      const isLast = rows.length < limit && (rows.length > 0 || skip === 0);
      const total = isLast ? skip + rows.length : countNow(storage, collection, { ...query, sort: null }, filter, pace);
      if (total === undefined) return undefined;
      commandCounts.set('find', (commandCounts.get('find') ?? 0) + 1);
      return { rows, total };
    } catch (error) {
      if (error === TOO_LONG_HERE) return undefined;
      throw storage.damage.judge(error, ns);
    }
  },
};
