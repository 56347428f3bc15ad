import { type Doc, isDocument } from '../../codec/document.js';
import { refusal } from '../../errors.js';
import { codeOf } from '../../query/geometry/cell.js';
import { readPoint, visitPlaces } from '../../query/geometry/point.js';
import { extractKeys } from '../../query/sort.js';
import { INDEX_SPACE } from '../format/key-spaces.js';
import type { EntryBudget } from './entry-budget.js';
import type { IndexEntry } from './index-definition.js';
import { EMPTY_ARRAY_VALUE, type KeyWriter } from '../encoding/key-encoding.js';

/** The entries one document has in one index. */
export interface IndexKeys {
  /** The full keys, without duplicates. */
  keys: Buffer[];
  /** Bit n: an array lies on the path of field n. */
  multikey: number;
  cut: boolean;
}

const NO_KEYS: IndexKeys = { keys: [], multikey: 0, cut: false };

/**
 * The keys of `doc` in `index`. A unique index's keys hold the fields alone, so that two documents with equal values
 * meet on one key; the others end with the encoded `_id`. Throws 171 when two fields run through different arrays, and
 * 257 when they are more than the budget has, before any is made.
 */
export function indexKeysOf(
  index: IndexEntry,
  doc: Doc,
  idBytes: Buffer,
  writer: KeyWriter,
  budget?: EntryBudget,
): IndexKeys {
  if (index.partial !== null && !index.partial(doc)) return NO_KEYS;
  if (index.isGeo) return geoKeys(index, doc, idBytes, writer, budget);
  if (index.definition.sparse && index.fields.every((field) => !hasPath(doc, field.parts, 0))) return NO_KEYS;
  const flat = flatKey(index, doc, idBytes, writer);
  if (flat !== null) {
    budget?.take(1);
    return flat;
  }

  const tuples = extractKeys(
    doc,
    index.fields.map((field) => field.parts),
  );
  budget?.take(tuples.length);
  const keys: Buffer[] = [];
  const seen = new Set<string>();
  let cut = false;
  for (const tuple of tuples) {
    writer.reset(INDEX_SPACE, index.definition.id);
    index.fields.forEach((field, n) => {
      // An empty array is `undefined` in a tuple; missing fields are null there.
      writer.component(
        tuple[n] === undefined ? EMPTY_ARRAY_VALUE : keyValue(index, tuple[n]),
        field.descending,
        index.limit,
      );
    });
    cut ||= writer.cut;
    if (!index.definition.unique) writer.raw(idBytes);
    const key = writer.take();
    const text = key.latin1Slice();
    if (seen.has(text)) continue;
    seen.add(text);
    keys.push(key);
  }
  return { keys, multikey: multikeyFields(index, doc), cut };
}

function keyValue({ collation }: IndexEntry, value: unknown): unknown {
  return collation === null ? value : collation.fold(value);
}

/** One key for each cell in which the document has a place; 16755 for what is no place. */
function geoKeys(index: IndexEntry, doc: Doc, idBytes: Buffer, writer: KeyWriter, budget?: EntryBudget): IndexKeys {
  const codes = new Set<number>();
  visitPlaces(doc, index.fields[0]!.parts, (value) => {
    budget?.take(1);
    const spot = readPoint(value);
    if (typeof spot === 'string') {
      throw refusal(16755, `Can't extract geo keys from '${index.fields[0]!.path}': ${spot}`);
    }
    codes.add(codeOf(spot));
  });
  const keys = Array.from(codes, (code) => {
    writer.reset(INDEX_SPACE, index.definition.id).component(code, false, index.limit);
    return writer.raw(idBytes).take();
  });
  return { keys, multikey: keys.length > 1 ? 1 : 0, cut: false };
}

/** The usual case, without arrays on any path; null when there is one. */
function flatKey(index: IndexEntry, doc: Doc, idBytes: Buffer, writer: KeyWriter): IndexKeys | null {
  writer.reset(INDEX_SPACE, index.definition.id);
  for (const field of index.fields) {
    let value: unknown = doc;
    for (const part of field.parts) {
      if (Array.isArray(value)) return null;
      value = isDocument(value) && Object.hasOwn(value, part) ? value[part] : undefined;
    }
    if (Array.isArray(value)) return null;
    writer.component(keyValue(index, value), field.descending, index.limit);
  }
  if (!index.definition.unique) writer.raw(idBytes);
  return { keys: [writer.take()], multikey: 0, cut: writer.cut };
}

function multikeyFields(index: IndexEntry, doc: Doc): number {
  let mask = 0;
  index.fields.forEach((field, n) => {
    let value: unknown = doc;
    for (const part of field.parts) {
      if (Array.isArray(value)) break;
      value = isDocument(value) && Object.hasOwn(value, part) ? value[part] : undefined;
    }
    if (Array.isArray(value)) mask |= 1 << n;
  });
  return mask;
}

function hasPath(value: unknown, parts: readonly string[], at: number): boolean {
  if (at === parts.length) return true;
  if (Array.isArray(value)) return value.some((item) => !Array.isArray(item) && hasPath(item, parts, at));
  return isDocument(value) && Object.hasOwn(value, parts[at]!) && hasPath(value[parts[at]!], parts, at + 1);
}

/** An index that is being built is always kept up, since its entries may not be there yet. */
export function reads(index: IndexEntry, touched: ReadonlySet<string>): boolean {
  if (index.reads === null || index.definition.state === 'building') return true;
  for (const field of touched) if (index.reads.has(field)) return true;
  return false;
}

const FEW_KEYS = 8;

/** The keys that are not among `others`, of which an array may have made a hundred thousand. */
export function keysWithout(keys: readonly Buffer[], others: readonly Buffer[]): Buffer[] {
  if (others.length <= FEW_KEYS) return keys.filter((key) => !others.some((other) => other.equals(key)));
  const known = new Set(others.map((key) => key.latin1Slice()));
  return keys.filter((key) => !known.has(key.latin1Slice()));
}
