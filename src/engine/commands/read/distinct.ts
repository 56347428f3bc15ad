import type { Doc } from '../../codec/document.js';
import { EngineError } from '../../errors.js';
import { planDistinct, DistinctScan } from '../../planner/scans/distinct-scan.js';
import type { ReadingScan } from '../../planner/scans/scan.js';
import type { Collation } from '../../query/collation/collation.js';
import { splitPath, visitPath } from '../../query/values/path.js';
import { compareValues } from '../../query/values/compare.js';
import { View } from '../../storage/view.js';
import { KeyWriter } from '../../storage/encoding/key-encoding.js';
import { command, requireNamespace } from '../command.js';
import { anything, collationOption, countOption, documentOption, textOption } from '../options.js';
import { openPace } from '../pace.js';
import { checkStillThere, compileQuery, leaveIfLong, openScan, planQuery, planQueryOf } from './query.js';
import { readVariables } from './variables.js';

const MAX_BYTES = 16 * 1024 * 1024;
const writer = new KeyWriter();

export const distinct = command({
  options: {
    key: textOption,
    query: documentOption,
    hint: anything,
    collation: collationOption,
    maxTimeMS: countOption(undefined),
  },
  leaves: true,
  async run(call, options, target) {
    const ns = requireNamespace(call, target);
    const path = splitPath(options.key);
    const query = compileQuery(options.query, {}, options.hint, readVariables(undefined, options.collation));
    const pace = openPace(call, options.maxTimeMS);
    const { storage } = call.core;
    storage.refresh();
    const collection = storage.catalog.find(ns);
    if (collection === null) return { values: [] };
    const view = new View(storage);
    const values = new DistinctValues(options.collation);
    const distinct = planDistinct(collection, planQueryOf(collection, query, 0), path.join('.'));
    const plan = distinct?.plan ?? planQuery(storage, collection, query, 0);
    if (distinct === null) leaveIfLong(pace, storage, collection, query, plan);
    const scan: ReadingScan =
      distinct === null
        ? openScan(storage, collection, plan, query, new Set([path[0]!]), view)
        : new DistinctScan(storage, collection, distinct, view);
    try {
      while (!scan.finished) {
        scan.readChunk((_bytes, doc) => {
          values.addFrom(doc, path);
          return false;
        });
        if (!scan.finished && pace.due(scan.lastRead)) {
          view.hold();
          await pace.rest();
          checkStillThere(storage, collection, plan);
        }
      }
    } finally {
      view.release();
    }
    return { values: values.sorted() };
  },
});

/** Collects different values; numbers of different types that are equal count once. */
class DistinctValues {
  private readonly byKey = new Map<string, unknown>();
  private bytes = 0;

  constructor(private readonly collation: Collation | null) {}

  addFrom(doc: Doc, path: readonly string[]): void {
    visitPath(doc, path, false, (value) => {
      if (Array.isArray(value)) for (const item of value as unknown[]) this.add(item);
      else if (value !== undefined) this.add(value);
      return false;
    });
  }

  sorted(): unknown[] {
    const values = [...this.byKey.values()];
    const { collation } = this;
    if (collation === null) return values.sort(compareValues);
    const folded = values.map((value) => ({ value, key: collation.fold(value) }));
    return folded.sort((a, b) => compareValues(a.key, b.key)).map(({ value }) => value);
  }

  private add(value: unknown): void {
    const compared = this.collation === null ? value : this.collation.fold(value);
    const key = writer.restart().component(compared, false, Infinity).take().latin1Slice();
    if (this.byKey.has(key)) return;
    this.bytes += key.length;
    if (this.bytes > MAX_BYTES) throw new EngineError(17217, 'distinct too big, 16mb cap');
    this.byKey.set(key, value);
  }
}
