import { parseEntry } from './parse-entry.js';
import { MAX_ENTRY_BYTES, type Entry } from './entry.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const LINE_FEED = 0x0a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const isSpace = (byte: number): boolean => byte === 0x20 || byte === LINE_FEED || byte === 0x0d || byte === 0x09;

/**
 * The elements of one JSON array, or a sequence of JSON objects. Only brackets and quotation marks are followed here,
 * to find where an element ends; whether it is JSON is for the parser to say. UTF-8 never uses those bytes inside other
 * characters, so chunks may end anywhere. `wrapped`: the array is the first one inside an object.
 */
export async function* readJsonArray(
  chunks: AsyncIterable<Buffer>,
  { wrapped = false }: { wrapped?: boolean } = {},
): AsyncGenerator<Entry> {
  const scan = new Scan(wrapped);
  for await (const chunk of chunks) {
    yield* scan.feed(chunk);
    if (scan.failed) return;
  }
  yield* scan.end();
}

class Scan {
  failed = false;
  readonly #wrapped: boolean;
  private line = 1;
  private startLine = 1;
  private state: 'start' | 'array' | 'sequence' | 'done' = 'start';
  private depth = 0;
  private inText = false;
  private escaped = false;
  /** Bytes of the element under way that came with earlier chunks. */
  private parts: Buffer[] = [];
  private partBytes = 0;
  /** The start of the current element in this chunk; -1 between elements. */
  private from = -1;
  private open = false;

  constructor(wrapped: boolean) {
    this.#wrapped = wrapped;
  }

  *feed(chunk: Buffer): Generator<Entry> {
    this.from = this.open ? 0 : -1;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (byte === LINE_FEED) this.line++;
      if (this.inText) {
        if (this.escaped) this.escaped = false;
        else if (byte === BACKSLASH) this.escaped = true;
        else if (byte === QUOTE) this.inText = false;
        continue;
      }
      if (!this.open) {
        yield* this.between(byte, at);
        if (this.failed) return;
        continue;
      }
      yield* this.within(chunk, byte, at);
      if (this.failed) return;
    }
    if (!this.open) return;
    this.partBytes += chunk.length - this.from;
    if (this.partBytes > MAX_ENTRY_BYTES) {
      yield this.fail(this.startLine, `longer than ${MAX_ENTRY_BYTES / 1024 / 1024} MB`);
      return;
    }
    this.parts.push(Buffer.from(chunk.subarray(this.from)));
  }

  *end(): Generator<Entry> {
    if (this.open) yield this.fail(this.startLine, 'the file ends inside this document');
    else if (this.state === 'array') yield this.fail(this.line, 'the file ends before the array is closed by "]"');
  }

  private *between(byte: number, at: number): Generator<Entry> {
    if (isSpace(byte) || this.isByteOrderMark(byte, at)) return;
    if (this.#wrapped && (this.state === 'done' || (this.state === 'start' && byte !== OPEN_ARRAY))) return;
    if (this.state === 'start') {
      if (byte === OPEN_ARRAY) {
        this.state = 'array';
        return;
      }
      if (byte !== OPEN_OBJECT) {
        yield this.fail(this.line, 'expected a JSON array of documents, beginning with "["');
        return;
      }
      this.state = 'sequence';
    }
    if (this.state === 'done') {
      yield this.fail(this.line, 'there is something after the end of the array');
      return;
    }
    if (byte === COMMA) return;
    if (this.state === 'array' && byte === CLOSE_ARRAY) {
      this.state = 'done';
      return;
    }
    this.open = true;
    this.from = at;
    this.startLine = this.line;
    this.depth = byte === OPEN_OBJECT || byte === OPEN_ARRAY ? 1 : 0;
    this.inText = byte === QUOTE;
  }

  private *within(chunk: Buffer, byte: number, at: number): Generator<Entry> {
    if (byte === QUOTE) {
      this.inText = true;
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      this.depth++;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      this.depth--;
      if (this.depth === 0) {
        yield this.take(chunk, at + 1);
      }
      // A bare value such as `1]` ends where the array does.
      else if (this.depth < 0) {
        yield this.take(chunk, at);
        this.state = 'done';
      }
    } else if (byte === COMMA && this.depth === 0) {
      yield this.take(chunk, at);
    }
  }

  private take(chunk: Buffer, end: number): Entry {
    const last = chunk.subarray(this.from, end);
    const bytes = this.parts.length === 0 ? last : Buffer.concat([...this.parts, last]);
    this.parts = [];
    this.partBytes = 0;
    this.open = false;
    this.depth = 0;
    return parseEntry(this.startLine, bytes);
  }

  private isByteOrderMark(byte: number, at: number): boolean {
    return this.state === 'start' && at < 3 && (byte === 0xef || byte === 0xbb || byte === 0xbf);
  }

  private fail(line: number, problem: string): Entry {
    this.failed = true;
    return { line, problem };
  }
}
