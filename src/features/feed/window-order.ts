import { calculateObjectSize, ObjectId, type Document } from 'bson';
import type { SortField } from '../documents/query/parse-sort.js';
import { compareKeys, RANK, sortKeyOf, type SortKey } from '../documents/query/sort-key.js';
import type { FoundChange } from '../changes/change-log.js';
import { digest } from './feed-query.js';

/** What is kept of a document that a window shows. */
export interface WindowEntry {
  id: string;
  /** By the sort's fields, all but `_id`, with which each sort ends. */
  keys: readonly WindowKey[];
  /** No two versions of a document have the same. */
  version: number;
}

/** Documents of a window in their order. */
export interface WindowPart {
  entries: WindowEntry[];
  /** The documents of the entries. */
  items: FoundChange[];
  /** Nothing comes behind them. */
  isEnd: boolean;
}

/** A long one is known by its beginning alone. */
type WindowKey = SortKey & { isCut?: true };

const MAX_CHARACTERS = 256;
const MAX_BYTES = 1024;

/** The entry of a stored document. */
export function entryOf(document: Document, sort: readonly SortField[]): WindowEntry {
  const { _id, updatedAt } = document as { _id: unknown; updatedAt?: unknown };
  const keys = sort.slice(0, -1).map((field) => shortened(sortKeyOf(document, field)));
  return { id: String(_id), keys, version: updatedAt instanceof Date ? updatedAt.getTime() : 0 };
}

function shortened(key: SortKey): WindowKey {
  if (!('value' in key)) return key;
  const { rank, value } = key;
  if (typeof value === 'string') {
    if (value.length <= MAX_CHARACTERS) return key;
    // Not in the middle of a character beyond the first plane.
    const isPair = /[\ud800-\udbff]/.test(value[MAX_CHARACTERS - 1]!);
    return { rank, value: value.slice(0, isPair ? MAX_CHARACTERS - 1 : MAX_CHARACTERS), isCut: true };
  }
  const isLarge = typeof value === 'object' && value !== null && calculateObjectSize({ value }) > MAX_BYTES;
  return isLarge ? { rank, value: null, isCut: true } : key;
}

/** The order of two documents in a list; null where their beginnings do not tell. */
export function compareEntries(a: WindowEntry, b: WindowEntry, sort: readonly SortField[]): number | null {
  for (const [at, { direction }] of sort.entries()) {
    const [left, right] = [a.keys[at], b.keys[at]];
    if (!left || !right) return direction * (a.id < b.id ? -1 : Number(a.id > b.id));
    if (isUndecided(left, right)) return null;
    const order = compareKeys(left, right) * direction;
    if (order !== 0) return order;
  }
  return 0;
}

function isUndecided(a: WindowKey, b: WindowKey): boolean {
  if (a.rank !== b.rank || !(a.isCut || b.isCut) || !('value' in a) || !('value' in b)) return false;
  if (typeof a.value !== 'string' || typeof b.value !== 'string') return true;
  return a.value.startsWith(b.value) || b.value.startsWith(a.value);
}

/** The position behind an entry, as lists go on from it; null where it is not known as a whole. */
export function positionOf({ id, keys }: WindowEntry): SortKey[] | null {
  if (keys.some(({ isCut }) => isCut)) return null;
  return [...keys, { rank: RANK.id, value: new ObjectId(id) }];
}

/** A short text for what is shown: another one when a document comes, goes or is another version. */
export function digestOf(entries: readonly WindowEntry[]): string {
  return digest(entries.map(({ id, version }) => `${id}${version}`).join());
}
