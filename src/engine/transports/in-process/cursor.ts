import { decodeDocument } from '../../codec/decode.js';
import { toApp } from '../../codec/app-values.js';
import { type Doc, RawDocument, type Row } from '../../codec/document.js';
import { encodeDocument } from '../../codec/encode.js';
import type { CommandSession } from './session.js';
import { invalidArgument } from './driver-errors.js';

/** Rows that are fetched in one go unless the caller says otherwise; nothing travels, so more than the driver's 101. */
const BATCH_SIZE = 1000;

/** The `cursor` field of a reply. */
interface Batch {
  firstBatch?: Row[];
  nextBatch?: Row[];
  id: bigint;
  ns: string;
}

/** A cursor over the replies of one command, with the driver's methods. */
export class InProcessCursor {
  private isClosed = false;
  private started = false;
  private id = 0n;
  private ns = '';
  private rows: Row[] = [];
  private at = 0;
  private size: number | undefined;
  private transforms: ((doc: unknown) => unknown)[] | null = null;

  constructor(
    private readonly session: CommandSession,
    /** The command, which belongs to this cursor. */
    private readonly body: Doc,
    private readonly raw: boolean,
    private readonly sizeInCursorField: boolean,
    private readonly signal?: AbortSignal,
  ) {}

  /** There is nothing more, neither in hand nor to be fetched. */
  get closed(): boolean {
    return this.at >= this.rows.length && (this.isClosed || (this.started && this.id === 0n));
  }

  sort(sort: unknown, direction?: unknown): this {
    return this.set('sort', readSort(sort, direction));
  }

  limit(value: number): this {
    return this.set('limit', value);
  }

  skip(value: number): this {
    return this.set('skip', value);
  }

  project(value: object): this {
    return this.set('projection', this.session.readDoc(value));
  }

  hint(value: unknown): this {
    return this.set('hint', typeof value === 'string' ? value : this.session.readDoc(value as object));
  }

  filter(value: object): this {
    return this.set('filter', this.session.readFilter(value));
  }

  maxTimeMS(value: number): this {
    return this.set('maxTimeMS', value);
  }

  batchSize(value: number): this {
    this.size = value;
    return this;
  }

  map(transform: (doc: unknown) => unknown): this {
    (this.transforms ??= []).push(transform);
    return this;
  }

  async next(): Promise<unknown> {
    if (this.at >= this.rows.length && !(await this.fetch())) return null;
    return this.take();
  }

  tryNext(): Promise<unknown> {
    return this.next();
  }

  async hasNext(): Promise<boolean> {
    if (this.at < this.rows.length) return true;
    const fetching = this.fetch();
    return fetching instanceof Promise ? await fetching : fetching;
  }

  /** The documents fetched and not read yet; as in the driver, `map` does not reach them. */
  readBufferedDocuments(): unknown[] {
    const docs = (this.at === 0 ? this.rows : this.rows.slice(this.at)).map((row) => presentRow(row, this.raw));
    this.rows = [];
    this.at = 0;
    return docs;
  }

  async toArray(): Promise<unknown[]> {
    const all: unknown[] = [];
    try {
      for (;;) {
        while (this.at < this.rows.length) all.push(this.take());
        const fetching = this.fetch();
        if (!(fetching instanceof Promise ? await fetching : fetching)) return all;
      }
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async forEach(visit: (doc: unknown) => boolean | void): Promise<void> {
    for await (const doc of this) if (visit(doc) === false) return;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator {
    try {
      while (this.at < this.rows.length || (await this.fetch())) yield this.take();
    } finally {
      await this.close();
    }
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.rows = [];
    this.at = 0;
    if (this.id === 0n) return;
    const { id, ns } = this;
    this.id = 0n;
    await this.session.run({ killCursors: ns.slice(ns.indexOf('.') + 1), cursors: [id] });
  }

  async count(): Promise<number> {
    const { find, filter, hint } = this.body;
    const reply = await this.session.run({ count: find, query: filter ?? {}, ...(hint === undefined ? {} : { hint }) });
    return reply['n'] as number;
  }

  async explain(): Promise<unknown> {
    const { maxTimeMS } = this.body;
    const command = { explain: this.body, ...(maxTimeMS === undefined ? {} : { maxTimeMS }) };
    return toApp(await this.session.run(command, this.signal));
  }

  private set(name: string, value: unknown): this {
    if (this.started) throw invalidArgument('Cursor is already initialized');
    this.body[name] = value;
    return this;
  }

  private take(): unknown {
    const row = this.rows[this.at++]!;
    let doc = presentRow(row, this.raw);
    if (this.transforms !== null) for (const transform of this.transforms) doc = transform(doc);
    return doc;
  }

  /** Gets the next batch; false when there are no more rows. */
  private fetch(): Promise<boolean> | boolean {
    while (!this.isClosed) {
      if (this.started && this.id === 0n) return false;
      const command = this.started ? this.nextCommand() : this.firstCommand();
      this.started = true;
      const running = this.session.run(command, this.signal);
      if (running instanceof Promise) return this.fetchLater(running);
      if (this.receive(running)) return true;
    }
    return false;
  }

  private async fetchLater(running: Promise<Doc>): Promise<boolean> {
    const received = this.receive(await running);
    if (!this.isClosed) return received || this.fetch();
    // Closed while it ran: nobody will ask for what has come, nor for the rest.
    await this.close();
    return false;
  }

  private firstCommand(): Doc {
    const batchSize = this.size ?? BATCH_SIZE;
    if (this.sizeInCursorField) this.body['cursor'] = { batchSize };
    else this.body['batchSize'] = batchSize;
    return this.body;
  }

  private nextCommand(): Doc {
    return {
      getMore: this.id,
      collection: this.ns.slice(this.ns.indexOf('.') + 1),
      batchSize: this.size ?? BATCH_SIZE,
    };
  }

  /** Takes over the rows of a reply; false when there are none. */
  private receive(reply: Doc): boolean {
    const { firstBatch, nextBatch, id, ns } = reply['cursor'] as Batch;
    this.rows = firstBatch ?? nextBatch ?? [];
    this.at = 0;
    this.id = id;
    this.ns = ns;
    return this.rows.length > 0;
  }
}

/** The driver's ways to write a sort, as a document of 1 and -1. */
export function readSort(sort: unknown, direction?: unknown): Doc {
  if (isSortDocument(sort)) return sort;
  if (typeof sort === 'string') return { [sort]: readDirection(direction ?? 1) };
  if (Array.isArray(sort)) {
    const pairs = typeof sort[0] === 'string' && sort.length === 2 && isDirection(sort[1]) ? [sort] : sort;
    return Object.fromEntries(
      (pairs as unknown[]).map((pair) =>
        Array.isArray(pair) ? [String(pair[0]), readDirection(pair[1])] : [String(pair), 1],
      ),
    );
  }
  const entries = sort instanceof Map ? [...(sort as Map<string, unknown>)] : Object.entries(sort as object);
  return Object.fromEntries(entries.map(([path, value]) => [path, readDirection(value)]));
}

/** The usual way: already as the engine wants it. */
function isSortDocument(sort: unknown): sort is Doc {
  if (typeof sort !== 'object' || sort === null || Object.getPrototypeOf(sort) !== Object.prototype) return false;
  for (const path in sort) {
    const direction = (sort as Doc)[path];
    if (direction !== 1 && direction !== -1) return false;
  }
  return true;
}

function isDirection(value: unknown): boolean {
  return value === 1 || value === -1 || /^(?:asc|desc)/.test(String(value));
}

function readDirection(value: unknown): unknown {
  switch (String(value).toLowerCase()) {
    case '1':
    case 'asc':
    case 'ascending':
      return 1;
    case '-1':
    case 'desc':
    case 'descending':
      return -1;
    default:
      return value;
  }
}

/** A row as the application gets it: decoded, or as BSON. */
export function presentRow(row: Row, raw: boolean): unknown {
  if (raw) return row instanceof RawDocument ? row.bytes : encodeDocument(row);
  return row instanceof RawDocument ? decodeDocument(row.bytes, 'app') : toApp(row);
}
