import { MAX_ENTRY_BYTES } from './entry.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const LINE_FEED = 0x0a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const isSpace = (byte: number): boolean => byte === 0x20 || byte === LINE_FEED || byte === 0x0d || byte === 0x09;

/** The bytes of an element, or what is wrong with the file. */
export type FoundElement = { line: number; bytes: Buffer } | { line: number; problem: string };

/**
 * Finds the elements of one JSON array, or of a sequence of JSON objects. Only brackets and quotation marks are
 * followed, to find where an element ends; whether it is JSON is for the parser to say. UTF-8 never uses those bytes
 * inside other characters, so chunks may end anywhere.
 */
export class ElementScan {
  failed = false;
  /** The bytes of an element that is longer than any document may be; it ends the reading. */
  tooLong: Buffer[] | null = null;
  private currentLine = 1;
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
  readonly #inObject: boolean;

  /** `inArrayAt`: it begins inside an array, on this line, and leaves alone what comes behind it. */
  constructor(inArrayAt?: number) {
    this.#inObject = inArrayAt !== undefined;
    if (inArrayAt === undefined) return;
    this.currentLine = inArrayAt;
    this.state = 'array';
  }

  /** Where the element under way begins. */
  get line(): number {
    return this.startLine;
  }

  get isSequence(): boolean {
    return this.state === 'sequence';
  }

  *feed(chunk: Buffer): Generator<FoundElement> {
    this.from = this.open ? 0 : -1;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (byte === LINE_FEED) this.currentLine++;
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
    this.parts.push(Buffer.from(chunk.subarray(this.from)));
    if (this.partBytes > MAX_ENTRY_BYTES) this.tooLong = this.parts;
  }

  *end(): Generator<FoundElement> {
    if (this.open) {
      yield this.fail(this.startLine, 'the file ends inside this document');
    } else if (this.state === 'array') {
      yield this.fail(this.currentLine, 'the file ends before the array is closed by "]"');
    }
  }

  private *between(byte: number, at: number): Generator<FoundElement> {
    if (isSpace(byte) || this.isByteOrderMark(byte, at)) return;
    if (this.#inObject && this.state === 'done') return;
    if (this.state === 'start') {
      if (byte === OPEN_ARRAY) {
        this.state = 'array';
        return;
      }
      if (byte !== OPEN_OBJECT) {
        yield this.fail(this.currentLine, 'expected a JSON array of documents, beginning with "["');
        return;
      }
      this.state = 'sequence';
    }
    if (this.state === 'done') {
      yield this.fail(this.currentLine, 'there is something after the end of the array');
      return;
    }
    if (byte === COMMA) return;
    if (this.state === 'array' && byte === CLOSE_ARRAY) {
      this.state = 'done';
      return;
    }
    this.open = true;
    this.from = at;
    this.startLine = this.currentLine;
    this.depth = byte === OPEN_OBJECT || byte === OPEN_ARRAY ? 1 : 0;
    this.inText = byte === QUOTE;
  }

  private *within(chunk: Buffer, byte: number, at: number): Generator<FoundElement> {
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

  private take(chunk: Buffer, end: number): FoundElement {
    const last = chunk.subarray(this.from, end);
    const bytes = this.parts.length === 0 ? last : Buffer.concat([...this.parts, last]);
    this.parts = [];
    this.partBytes = 0;
    this.open = false;
    this.depth = 0;
    return { line: this.startLine, bytes };
  }

  private isByteOrderMark(byte: number, at: number): boolean {
    return this.state === 'start' && at < 3 && (byte === 0xef || byte === 0xbb || byte === 0xbf);
  }

  private fail(line: number, problem: string): FoundElement {
    this.failed = true;
    return { line, problem };
  }
}
