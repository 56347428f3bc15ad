import { decodeDocument } from '../../codec/decode.js';
import type { Doc } from '../../codec/document.js';
import type { ReadingScan, VisitRow } from './scan.js';
import { readPath } from '../../query/values/path.js';
import { KeyWriter } from '../../storage/encoding/key-encoding.js';
import { INDEX_SPACE } from '../../storage/format/key-spaces.js';
import { translateStorageError } from '../../storage/file/translate-error.js';
import type { CollectionEntry, IndexEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import type { View } from '../../storage/view.js';
import { successor } from '../key-ranges.js';
import type { Plan, PlanQuery } from '../plan.js';
import { indexPlan, serveFrom, usableIndexes } from '../index-plan.js';
import { isNumericPath } from '../sort-order.js';

/** Values read between two looks at the clock. */
const CHUNK = 64;
const ZERO = Uint8Array.of(0);
const writer = new KeyWriter();

/** Steps from one value of an indexed field to the next: however many documents share a value, one of them is read. */
export class DistinctScan implements ReadingScan {
  keysExamined = 0;
  lastRead = 0;
  private at = 0;
  private next: Buffer | null = null;
  private readonly fields: ReadonlySet<string>;

  constructor(
    private readonly storage: Storage,
    private readonly collection: CollectionEntry,
    private readonly distinct: DistinctPlan,
    private readonly view: View,
    /** A missing field counts as null, so that one document of both is enough. */
    private readonly missingIsNull = false,
  ) {
    this.fields = new Set(distinct.index.fields.map(({ parts }) => parts[0]!));
  }

  get plan(): Plan {
    return this.distinct.plan;
  }

  get documentsExamined(): number {
    return this.keysExamined;
  }

  get finished(): boolean {
    return this.at >= this.plan.ranges.length;
  }

  readChunk(visit: VisitRow): boolean {
    const before = this.keysExamined;
    try {
      return this.view.read(() => {
        for (let n = 0; n < CHUNK && !this.finished; n++) if (this.step(visit)) return true;
        return false;
      });
    } catch (error) {
      throw translateStorageError(error, this.storage.environment.path, this.collection.ns);
    } finally {
      this.lastRead = this.keysExamined - before;
    }
  }

  /** Reads the next entry, or goes on to the next range when there is none; true when `visit` stops the scan. */
  private step(visit: VisitRow): boolean {
    const { reader } = this.storage.environment;
    const { plan, index, field } = this.distinct;
    const { start, end } = plan.ranges[this.at]!;
    for (const { value } of reader.range({ start: this.next ?? start, end, limit: 1 })) {
      this.keysExamined++;
      const key = reader.lastKey();
      const bytes = this.storage.documents.readByEntry(this.collection, index, reader.keySum(), value);
      const doc = decodeDocument(bytes, 'engine', this.fields);
      // A document without the field lies among those that hold null, of which each has to be looked at.
      const isMissing = !this.missingIsNull && readPath(doc, index.fields[field]!.parts) === undefined;
      this.next = isMissing ? Buffer.concat([key, ZERO]) : behindValue(index, field, doc);
      return visit(bytes, doc);
    }
    this.at++;
    this.next = null;
    return false;
  }
}

/** The first key behind those of documents that agree with `doc` in the index's fields up to this one. */
function behindValue({ definition, collation, fields, limit }: IndexEntry, last: number, doc: Doc): Buffer {
  writer.reset(INDEX_SPACE, definition.id);
  for (const { parts, descending } of fields.slice(0, last + 1)) {
    const value = readPath(doc, parts);
    writer.component(collation === null ? value : collation.fold(value), descending, limit);
  }
  return successor(writer.take());
}

/** A plan whose entries lie in the order of one field's values, so that one entry of each value has to be read. */
export interface DistinctPlan {
  readonly plan: Plan;
  readonly index: IndexEntry;
  /** Which field of the index has the values. */
  readonly field: number;
}

/**
 * How an index answers which values `path` has among the documents of the query: all conditions are equalities of the
 * fields in front of `path`, or one range of `path` itself, and no document has a list there. Null when none does.
 */
export function planDistinct(collection: CollectionEntry, query: PlanQuery, path: string): DistinctPlan | null {
  if (isNumericPath(path)) return null;
  for (const index of usableIndexes(collection, query)) {
    // Values that one collation takes for equal lie together in its keys.
    if (index.collation !== query.collation || (query.hint !== undefined && query.hint !== index)) continue;
    const plan = indexPlan(index, serveFrom(index.collation, query));
    const field = plan.bounds.points.length;
    if (!plan.exact || index.fields[field]?.path !== path) continue;
    if (plan.bounds.points.every((values) => values.length === 1)) return { plan, index, field };
  }
  return null;
}
