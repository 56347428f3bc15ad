import type { Doc } from '../../codec/document.js';
import type { Collation, Locale, Strength } from '../../query/collation/collation.js';
import type { Conjunct } from '../../query/match/match.js';

/** An index as the catalog stores it. */
export interface IndexDefinition {
  id: number;
  name: string;
  key: Doc;
  unique: boolean;
  sparse: boolean;
  hidden: boolean;
  partialFilterExpression?: Doc;
  expireAfterSeconds?: number;
  /** Absent: the simple one. */
  collation?: { locale: Locale; strength: Strength };
  /** `building`: writers maintain it, the planner ignores it. */
  state: 'ready' | 'building';
  /** Bit n is set once a document had an array on the path of field n. */
  multikey: number;
  /** Set once an entry was too long and had to be hashed: the order of entries is then only approximate. */
  cut: boolean;
  /** The process that builds or has built it, so that another one can take over when it died. */
  builder?: number;
}

/** One field of an index key. */
export interface IndexField {
  path: string;
  parts: readonly string[];
  descending: boolean;
}

/** An index ready for use: its definition with what was prepared from it. */
export interface IndexEntry {
  readonly definition: IndexDefinition;
  readonly fields: readonly IndexField[];
  /** Decides whether a document belongs into a partial index; null when the index is not partial. */
  readonly partial: ((doc: Doc) => boolean) | null;
  /** The conjuncts that a filter must have before a partial index serves it; `unknown` when that cannot be told. */
  readonly condition: readonly Conjunct[] | 'unknown' | null;
  /** The top-level fields that its keys and its condition are made from; null = possibly all. */
  readonly reads: ReadonlySet<string> | null;
  /** Its only field holds places, and its keys their cells (`query/geometry/cell.ts`). */
  readonly isGeo: boolean;
  /** By which its keys fold text, and its condition; null: the simple one. */
  readonly collation: Collation | null;
  /** Bytes one component may take in a key. */
  readonly limit: number;
}

/** How many entries an index holds, and the sum of their checksums. */
export interface EntryCounts {
  entries: number;
  digest: number;
}

/** Where the log of a collection's changes ends. */
export interface LogCounts {
  /** Another one after the log was ended and begun again. */
  epoch: number;
  /** The number of the last entry; those before it lie without a gap from the first that is left. */
  seq: number;
  /** Of all entries that are left. */
  bytes: number;
  /** Up to here the removals have been looked for whose documents' values are to be erased. */
  erased: number;
}

/**
 * Counts that every transaction on a collection keeps right: documents and their bytes, writes so far, the sum of the
 * documents' checksums, and how many have `true`, `false` or a list in the counted field.
 */
export interface KeptCounts {
  documents: number;
  bytes: number;
  writes: number;
  digest: number;
  yes: number;
  no: number;
  lists: number;
  /** By the id of the index. */
  indexes: Map<number, EntryCounts>;
  /** Null: its changes are not logged. */
  log: LogCounts | null;
}

/** The part of documents that the log of changes keeps as they were. */
export interface LogSettings {
  /** Top-level fields that are kept before all others. */
  first: string[];
  /** Top-level fields that are never kept; a change of them alone is none. */
  omit: string[];
  /** The field inside of those that is kept all the same, like any other. */
  except?: string;
}

/** A log as the catalog stores it. Its entries lie under an id of its own, so that none is mixed up with an earlier. */
export interface LogDefinition extends LogSettings {
  id: number;
}

/** A collection as the catalog stores it. */
export interface CollectionDefinition {
  id: number;
  ns: string;
  uuid: unknown;
  options: Doc;
  indexes: IndexDefinition[];
  /**
   * Set once an `_id` was too long for a key and had to be hashed: the order of documents is then not that of `_id`.
   */
  longIds?: boolean;
  /** The top-level field by whose values `true` and `false` the documents are counted. */
  countBy?: string;
  /** Set while changes are logged. */
  log?: LogDefinition;
}

/** The settings of a log, their names as they stand in BSON with the zero behind them. */
export interface PreparedLog {
  readonly id: number;
  readonly first: readonly Buffer[];
  readonly omit: readonly Buffer[];
  readonly except: Buffer | null;
  readonly omitted: ReadonlySet<string>;
}

/** A collection ready for use. `indexes` leaves out the implicit one on `_id`. */
export interface CollectionEntry {
  readonly definition: CollectionDefinition;
  readonly id: number;
  readonly ns: string;
  readonly indexes: readonly IndexEntry[];
  /** The top-level fields that index keys and partial filters are made from. */
  readonly indexedFields: ReadonlySet<string>;
  /** The paths whose values decide whether a filter implies the condition of a partial index. */
  readonly conditionFields: ReadonlySet<string>;
  /** The counted field alone, null when none is counted. */
  readonly countField: ReadonlySet<string> | null;
  /** Null when its changes are not logged. */
  readonly log: PreparedLog | null;
}
