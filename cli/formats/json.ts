import type { WantedList } from '../../src/exchange/wrapped-list.js';
import { ElementScan, type FoundElement } from './element-scan.js';
import { TOO_LONG, type Entry, parseEntry } from './parse-entry.js';
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
