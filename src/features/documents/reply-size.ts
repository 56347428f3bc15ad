import { invalid } from '../../errors.js';

/** BSON of the documents in one reply. Their JSON is about as long, at worst six times. */
export const MAX_REPLY_BYTES = 16 * 1024 * 1024;

/** How much one reply holds of documents, counted as they are read or put in. */
export class ReplySize {
  #bytes = 0;

  /** 400 RESULT_TOO_LARGE for what comes after the limit has been passed: one document alone never fails. */
  add(bytes: number): void {
    if (this.#bytes > MAX_REPLY_BYTES) {
      throw invalid(
        'RESULT_TOO_LARGE',
        `The reply would hold more than ${MAX_REPLY_BYTES} bytes of documents: ask for a smaller limit, for the fields you need, or populate less`,
      );
    }
    this.#bytes += bytes;
  }
}

/** A cursor of a `raw` read. */
interface RawCursor {
  readonly closed: boolean;
  hasNext(): Promise<boolean>;
  readBufferedDocuments(): unknown[];
  close(): Promise<void>;
}

/** All documents of a `raw` cursor, as long as they fit: what they are too many for is not read any more, so memory holds a batch beyond the limit at most. */
export async function readRows(cursor: RawCursor, size: ReplySize): Promise<Buffer[]> {
  const rows: Buffer[] = [];
  try {
    while (!cursor.closed && (await cursor.hasNext())) {
      for (const row of cursor.readBufferedDocuments() as Buffer[]) {
        size.add(row.length);
        rows.push(row);
      }
    }
  } catch (error) {
    await cursor.close();
    throw error;
  }
  return rows;
}
