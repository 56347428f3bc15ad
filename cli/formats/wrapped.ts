import { findWrapped, isWrappedList, type WantedList } from '../../src/exchange/wrapped-list.js';
import { ElementScan, type FoundElement } from './element-scan.js';
import { type Entry, parseEntry } from './entry.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const LINE_FEED = 0x0a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Lists that are looked for are no deeper. */
const MAX_DEPTH = 2;
const MAX_NAME_BYTES = 1024;

/** Finds a list inside an object, by the names that lead to it, and then its elements. */
export class WrappedScan {
  failed = false;
  readonly #takes: (path: string[]) => boolean;
  #line: number;
  #depth = 0;
  #inText = false;
  #escaped = false;
  #text: number[] = [];
  #names: string[] = [];
  #elements: ElementScan | null = null;

  /** `wanted`: the list, or the path to it. `line`: where the object begins. */
  constructor(wanted: WantedList | readonly string[], line: number) {
    this.#takes =
      'name' in wanted ? (path) => isWrappedList(path, wanted) : (path) => path.join('\n') === wanted.join('\n');
    this.#line = line;
  }

  get hasList(): boolean {
    return this.#elements !== null;
  }

  get tooLong(): Buffer[] | null {
    return this.#elements?.tooLong ?? null;
  }

  get line(): number {
    return this.#elements?.line ?? this.#line;
  }

  *feed(chunk: Buffer): Generator<FoundElement> {
    let rest = chunk;
    if (!this.#elements) {
      const from = this.#find(chunk);
      if (from < 0) return;
      this.#elements = new ElementScan(this.#line);
      rest = chunk.subarray(from);
    }
    yield* this.#elements.feed(rest);
    this.failed = this.#elements.failed;
  }

  *end(): Generator<FoundElement> {
    if (this.#elements) yield* this.#elements.end();
    else yield { line: this.#line, problem: 'longer than a document may be, and without a list of documents' };
  }

  /** The position behind the bracket that opens the list; -1 when this chunk does not have it. */
  #find(chunk: Buffer): number {
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (byte === LINE_FEED) this.#line++;
      if (this.#inText) {
        this.#readText(byte);
      } else if (byte === QUOTE) {
        this.#inText = true;
        this.#text = [];
      } else if (byte === COLON && this.#depth <= MAX_DEPTH) {
        this.#names[this.#depth - 1] = nameOf(this.#text);
      } else if (byte === OPEN_ARRAY && this.#depth <= MAX_DEPTH && this.#takes(this.#names.slice(0, this.#depth))) {
        return at + 1;
      } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        this.#names.length = Math.min(this.#names.length, this.#depth);
        this.#depth++;
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        this.#depth--;
      }
    }
    return -1;
  }

  #readText(byte: number): void {
    if (!this.#escaped && byte === QUOTE) {
      this.#inText = false;
      return;
    }
    this.#escaped = !this.#escaped && byte === BACKSLASH;
    if (this.#text.length < MAX_NAME_BYTES) this.#text.push(byte);
  }
}

function nameOf(bytes: readonly number[]): string {
  try {
    return JSON.parse(`"${Buffer.from(bytes).toString()}"`) as string;
  } catch {
    return '';
  }
}

/** Takes objects around lists of documents apart, when the first object of a file is one. */
export class Unwrapper {
  isFresh = true;
  #isWrapped = false;

  constructor(private readonly wanted: WantedList) {}

  /** The entries that an entry of the file stands for: itself, or those of the list inside. `bytes` are its text. */
  *take(entry: Exclude<Entry, { note: string }>, bytes: Buffer): Generator<Entry> {
    const isFirst = this.isFresh;
    this.isFresh = false;
    if (isFirst && 'problem' in entry) {
      // One broken document does not make the others unreadable.
      const scan = new WrappedScan([this.wanted.name], entry.line);
      const elements = [...scan.feed(bytes)];
      if (scan.hasList) yield* [...elements, ...scan.end()].map(toEntry);
      else yield entry;
      return;
    }
    const value = 'value' in entry ? entry.value : null;
    if ((!isFirst && !this.#isWrapped) || typeof value !== 'object' || value === null || Array.isArray(value)) {
      yield entry;
      return;
    }
    const { line } = entry;
    try {
      const wrapped = findWrapped(value as Record<string, unknown>, this.wanted);
      if (isFirst) this.#isWrapped = wrapped !== null;
      if (!wrapped) {
        yield entry;
        return;
      }
      for (const { name, count } of wrapped.others) yield { line, note: `${name}: a list of ${count}, left out` };
      const scan = new WrappedScan(wrapped.path, line);
      yield* [...scan.feed(bytes), ...scan.end()].map(toEntry);
    } catch (error) {
      yield { line, problem: (error as Error).message };
    }
  }
}

const toEntry = (found: FoundElement): Entry => ('problem' in found ? found : parseEntry(found.line, found.bytes));
