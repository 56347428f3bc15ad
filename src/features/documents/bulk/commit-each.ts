import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import type { Collection } from '../../collections/collection.js';
import { commitWrites, type DecidedWrite } from '../store/commit-writes.js';
import type { StoredDocument } from '../store/document.js';
import { openInserts } from '../write/insert-document.js';

/** Documents of one transaction. */
const BATCH = 100;

/**
 * Carries each write out that can be, in batches of one transaction; answers for the others, by position, why not. What
 * concerns all of them, such as an outage, is thrown.
 */
export async function commitEach(app: App, writes: readonly DecidedWrite[]): Promise<Map<number, AppError>> {
  const refused = new Map<number, AppError>();
  const noting = writes.map((write, index): DecidedWrite => ({
    ...write,
    decide(stored, ...asking) {
      refused.delete(index);
      try {
        return write.decide(stored, ...asking);
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        refused.set(index, error);
        return stored;
      }
    },
  }));
  for (let from = 0; from < writes.length; from += BATCH) {
    await commitBatch(app, noting, refused, from, Math.min(from + BATCH, writes.length));
  }
  return refused;
}

/** What an index refuses undoes the transaction: those before it are stored first, those after it by another one. */
async function commitBatch(
  app: App,
  writes: readonly DecidedWrite[],
  refused: Map<number, AppError>,
  from: number,
  to: number,
): Promise<void> {
  for (let next = from; next < to;) {
    let at = -1;
    const naming = (error: AppError, index: number): AppError => {
      at = next + index;
      return error;
    };
    try {
      return await commitWrites(app, writes.slice(next, to), { naming }).then(() => undefined);
    } catch (error) {
      if (!(error instanceof AppError) || at < 0 || error.kind === 'unavailable') throw error;
      await commitBatch(app, writes, refused, next, at);
      // A later document can be too much for this transaction alone.
      const isTooMuch = error.code === 'DOCUMENT_TOO_LARGE' && at > next;
      if (!isTooMuch) refused.set(at, error);
      next = isTooMuch ? at : at + 1;
    }
  }
}

/** Stores those new documents that can be stored, with the project's rights; answers for the others why not. */
export async function insertEachRecord(
  app: App,
  collection: Collection,
  documents: readonly StoredDocument[],
): Promise<Map<number, string>> {
  const refused = await commitEach(app, await openInserts(app, { collection, writer: null }, documents));
  return new Map([...refused].map(([at, error]) => [at, describeError(error)]));
}

/** The refusal of one document among many. */
export function describeError({ code, message, details = [] }: AppError): string {
  if (code !== 'DUPLICATE_VALUE') return message;
  const fields = details.map(({ field }) => field);
  if (fields.length > 1) return `${fields.join(' and ')} must be unique together: the values are taken`;
  const [field] = fields;
  return field === '_id' ? 'there is a document with this _id already' : `${field} must be unique: the value is taken`;
}
