import { invalid, unavailable } from '../../../errors.js';
import type { FairLimiter, Tenant } from '../../../fair-limiter.js';

const MAX_ATTEMPTS = 3;
/** Code of the database for a read whose index or collection was dropped under way. */
const PLAN_KILLED = 175;

/**
 * What a read answers, read from its beginning once more where an index went away under it, as happens when rules or
 * indexes of a collection change: nothing of it has been sent. 503 BUSY when that goes on.
 */
export async function readAgain<T>(read: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await read();
    } catch (error) {
      if ((error as { code?: unknown }).code !== PLAN_KILLED) throw error;
      if (attempt < MAX_ATTEMPTS) continue;
      const message = 'The indexes of the collection are changing: try again in a moment';
      throw unavailable('BUSY', message, { retryAfterSeconds: 1, cause: error });
    }
  }
}

/** BSON of the documents in one reply. Their JSON is about as long, at worst six times. */
export const MAX_REPLY_BYTES = 16 * 1024 * 1024;

/** Replies of no more than this are made and sent in one go, and need no part of the budget. */
export const SMALL_REPLY_BYTES = 128 * 1024;

/** What is read without having reserved the room for all of it. */
const UNRESERVED_BYTES = 256 * 1024;

/** The room that a reply may need of the budget before it is read: one document beyond the limit is let in. */
const WHOLE_REPLY_BYTES = MAX_REPLY_BYTES + 1024 * 1024;

/** Whose replies they are, and what they share. */
interface Account {
  budget: FairLimiter;
  tenant: Tenant;
}

/** The budget had no room for what has been read. */
class NoRoom extends Error {}

/**
 * The size of one reply's documents, counted as they are read or put in, and reserved from the budget when it is large.
 */
export class ReplySize {
  #bytes = 0;
  #reserved: number;
  /** Memory for the largest reply is reserved, or no limit applies. */
  #isWhole: boolean;

  constructor(
    private readonly account: Account | null = null,
    reserved = 0,
  ) {
    this.#reserved = reserved;
    this.#isWhole = !account || reserved > 0;
  }

  /** Of a find, so that memory holds no more than there is room for. */
  get batchBytes(): number {
    return this.#isWhole ? MAX_REPLY_BYTES : UNRESERVED_BYTES;
  }

  /** Before more is read than one batch. */
  requireWhole(): void {
    if (!this.#isWhole) throw new NoRoom();
  }

  /** Counts what is read beside the reply. */
  beside(): ReplySize {
    const size = new ReplySize(this.account);
    size.#isWhole = this.#isWhole;
    return size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isLarge(): boolean {
    return this.#bytes > SMALL_REPLY_BYTES;
  }

  /** 400 RESULT_TOO_LARGE for what comes after the limit has been passed: one document alone never fails. */
  add(bytes: number): void {
    if (this.#bytes > MAX_REPLY_BYTES) {
      throw invalid(
        'RESULT_TOO_LARGE',
        `The reply would hold more than ${MAX_REPLY_BYTES} bytes of documents: ask for a smaller limit, for the fields you need, or populate less`,
      );
    }
    this.#bytes += bytes;
    if (this.account && this.#bytes > SMALL_REPLY_BYTES) this.#reserve(this.account);
  }

  /** Gives back what was reserved beyond what the reply became. */
  settle(): void {
    const needed = this.isLarge ? this.#bytes : 0;
    if (this.#reserved > needed) this.#giveBack(this.#reserved - needed);
  }

  /** Gives everything back: nothing of the reply is held any more. Harmless when repeated. */
  release(): void {
    if (this.#reserved > 0) this.#giveBack(this.#reserved);
  }

  #reserve({ budget, tenant }: Account): void {
    const more = this.#bytes - this.#reserved;
    if (more <= 0) return;
    if (this.#isWhole) budget.add(tenant, more);
    else if (!budget.tryTake(tenant, more)) throw new NoRoom();
    this.#reserved += more;
  }

  #giveBack(bytes: number): void {
    this.#reserved -= bytes;
    this.account!.budget.giveBack(this.account!.tenant, bytes);
  }
}

/**
 * readWithin for reads that are too dear to be repeated and have turns of their own: reserves room for the largest
 * reply first. A read that waits for room leaves its turn to others.
 */
export function readInTurn<T>(
  turns: FairLimiter,
  budget: FairLimiter,
  tenant: Tenant,
  signal: AbortSignal,
  read: (size: ReplySize) => Promise<T>,
): Promise<T> {
  return readAgain(() => readOnceInTurn(turns, budget, tenant, signal, read));
}

async function readOnceInTurn<T>(
  turns: FairLimiter,
  budget: FairLimiter,
  tenant: Tenant,
  signal: AbortSignal,
  read: (size: ReplySize) => Promise<T>,
): Promise<T> {
  // Two of a project run at once; by the share of an address it would be one, of all users of an office together.
  const account = { budget, tenant: { ...tenant, address: '' } };
  const done = await turns.run(
    tenant,
    async () => {
      if (!budget.tryTake(account.tenant, WHOLE_REPLY_BYTES)) return null;
      return { result: await readReserved(new ReplySize(account, WHOLE_REPLY_BYTES), read) };
    },
    signal,
  );
  if (done) return done.result;
  const size = await reserveWhole(account, signal);
  try {
    return await turns.run(tenant, () => readReserved(size, read), signal);
  } catch (error) {
    size.release();
    throw error;
  }
}

/** Waits for the room that the largest reply needs, or for as much as the tenant may have. */
async function reserveWhole(account: Account, signal?: AbortSignal): Promise<ReplySize> {
  const { budget, tenant } = account;
  const bytes = budget.within(tenant, WHOLE_REPLY_BYTES);
  await budget.take(tenant, bytes, signal);
  return new ReplySize(account, bytes);
}

async function readReserved<T>(size: ReplySize, read: (size: ReplySize) => Promise<T>): Promise<T> {
  try {
    const result = await read(size);
    size.settle();
    return result;
  } catch (error) {
    size.release();
    throw error;
  }
}

/**
 * Reads for a reply within the budget. When it turns out to be large and there is no room, what has been read is let go
 * and read once more when it is the caller's turn: waiting costs no memory. 503 BUSY when too many wait. The caller
 * releases the size when the reply is sent.
 */
export function readWithin<T>(
  budget: FairLimiter,
  tenant: Tenant,
  read: (size: ReplySize) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  return readAgain(() => readOnceWithin(budget, tenant, read, signal));
}

async function readOnceWithin<T>(
  budget: FairLimiter,
  tenant: Tenant,
  read: (size: ReplySize) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const account = { budget, tenant };
  const size = new ReplySize(account);
  try {
    return await read(size);
  } catch (error) {
    size.release();
    if (!(error instanceof NoRoom)) throw error;
  }
  return readReserved(await reserveWhole(account, signal), read);
}

/** A cursor of a `raw` read. */
interface RawCursor {
  readonly closed: boolean;
  hasNext(): Promise<boolean>;
  readBufferedDocuments(): unknown[];
  close(): Promise<void>;
}

/**
 * All documents of a `raw` cursor, as long as they fit: what they are too many for is not read any more, so memory
 * holds a batch beyond the limit at most. `show` leaves out what the caller does not see; that does not count.
 */
export async function readRows(
  cursor: RawCursor,
  size: ReplySize,
  show: (row: Buffer) => Buffer = asItIs,
): Promise<Buffer[]> {
  const rows: Buffer[] = [];
  try {
    while (!cursor.closed && (await cursor.hasNext())) {
      if (rows.length > 0) size.requireWhole();
      for (const stored of cursor.readBufferedDocuments() as Buffer[]) {
        const row = show(stored);
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

const asItIs = (row: Buffer): Buffer => row;
