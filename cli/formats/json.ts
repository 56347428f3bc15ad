import type { WantedList } from '../../src/exchange/wrapped-list.js';
import { ElementScan, type FoundElement } from './element-scan.js';
import { TOO_LONG, type Entry, parseEntry, MAX_ENTRY_BYTES } from './entry.js';
import { Unwrapper, WrappedScan } from './wrapped.js';

/**
 * The documents of a JSON file: the elements of an array, a sequence of objects, or an array inside an object, as many
 * programs write it.
 */
export async function* readJson(chunks: AsyncIterable<Buffer>, wanted: WantedList): AsyncGenerator<Entry> {
  const unwrapper = new Unwrapper(wanted);
  let scan: ElementScan | WrappedScan = new ElementScan();
  const read = function* (found: Iterable<FoundElement>): Generator<Entry> {
    for (const each of found) {
      if ('problem' in each) {
        yield each;
      } else if (scan instanceof ElementScan && scan.isSequence) {
        yield* unwrapper.take(parseEntry(each.line, each.bytes), each.bytes);
      } else {
        yield parseEntry(each.line, each.bytes);
      }
    }
  };
  for await (const chunk of chunks) {
    yield* read(scan.feed(chunk));
    if (scan.tooLong) {
      if (!(scan instanceof ElementScan && scan.isSequence && unwrapper.isFresh)) {
        yield { line: scan.line, problem: TOO_LONG };
        return;
      }
      // Too large to be a document, it can only be an object around a list.
      const begun: Buffer[] = scan.tooLong;
      scan = new WrappedScan(wanted, scan.line);
      for (const part of begun) yield* read(scan.feed(part));
    }
    if (scan.failed) return;
  }
  yield* read(scan.end());
}

const LINE_FEED = 0x0a;

const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0d;

/** One JSON document per line; empty lines are skipped. */
export async function* readNdjson(chunks: AsyncIterable<Buffer>, wanted: WantedList): AsyncGenerator<Entry> {
  const unwrapper = new Unwrapper(wanted);
  let line = 0;
  for await (const bytes of splitLines(chunks)) {
    line++;
    if (bytes === null) {
      yield { line, problem: TOO_LONG };
      continue;
    }
    if (!bytes.every(isSpace)) yield* unwrapper.take(parseEntry(line, bytes), bytes);
  }
}

/** Lines without their line feed; null for one that is too long to be kept. */
async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer | null> {
  let parts: Buffer[] = [];
  let bytes = 0;
  const add = (part: Buffer): void => {
    bytes += part.length;
    if (bytes <= MAX_ENTRY_BYTES) parts.push(part);
    else parts = [];
  };
  const take = (): Buffer | null => {
    const line = bytes > MAX_ENTRY_BYTES ? null : parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    parts = [];
    bytes = 0;
    return line;
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end));
      yield take();
      start = end + 1;
    }
    if (start < chunk.length) add(chunk.subarray(start));
  }
  if (bytes > 0) yield take();
}
