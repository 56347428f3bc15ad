import type { WantedList } from '../../src/exchange/wrapped-list.js';
import { MAX_ENTRY_BYTES, TOO_LONG, type Entry, parseEntry } from './parse-entry.js';
import { Unwrapper } from './wrapped.js';

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
