import { nextTurn } from '../../scheduler.js';
import { ownerKey } from '../catalog/catalog.js';
import { decodeRecord } from '../catalog/catalog-records.js';
import { CHANGE_SPACE } from '../format/key-spaces.js';
import type { Storage } from '../storage.js';
import { decodeEntry, entryKey, OPERATIONS } from './change-entry.js';
import { logPosition } from './read-changes.js';

/** Batch size, in entries. */
const CHUNK = 256;
/** How long entries are looked at before others get their turn. */
const TURN_MS = 3;

/** The changes of one document that are looked for. */
export interface HistoryQuery {
  /** Begins with the `_id`. */
  document: Buffer;
  /** Only entries with smaller numbers; null for all. */
  before: number | null;
  limit: number;
  /** Of the log, those of other documents too. */
  maxEntries: number;
}

/** A change of a document with what the log holds of it before. */
export interface HistoryEntry {
  at: number;
  operation: keyof typeof OPERATIONS;
  /** Of an insert its `_id` alone. */
  earlier: Buffer;
  /** Fields may be missing from `earlier`. */
  isPartial: boolean;
}

export interface DocumentHistory {
  /** The newest first. */
  changes: HistoryEntry[];
  /** For `before` of the next search; null when nothing older is there. */
  next: number | null;
}

const NAMES = new Map(Object.entries(OPERATIONS).map(([name, code]) => [code, name as keyof typeof OPERATIONS]));

/** The changes of a document that a log has kept, newest first; null where nothing is logged. */
export async function readHistory(storage: Storage, ns: string, query: HistoryQuery): Promise<DocumentHistory | null> {
  const { document, limit, maxEntries } = query;
  const wanted = Buffer.from(storage.documents.encodeIdOf(document));
  const changes: HistoryEntry[] = [];
  let before = query.before ?? Infinity;
  let left = maxEntries;
  for (;;) {
    storage.refresh();
    const position = logPosition(storage, ns);
    const log = storage.catalog.find(ns)?.log;
    if (!log || !position) return null;
    before = Math.min(before, position.seq + 1);
    if (before <= 1) return { changes, next: null };
    const turnEnds = performance.now() + TURN_MS;
    while (performance.now() < turnEnds) {
      const range = storage.environment.store.getRange({
        start: entryKey(log.id, before - 1),
        end: ownerKey(CHANGE_SPACE, log.id),
        reverse: true,
        limit: Math.min(CHUNK, left),
      });
      let seen = 0;
      for (const { key, value } of range) {
        decodeRecord(key, value, `A change in the log of ${ns}`);
        const { seq, at, operation, earlier, isPartial } = decodeEntry(key, value);
        seen++;
        before = seq;
        if (storage.documents.encodeIdOf(earlier).equals(wanted)) {
          changes.push({ at, operation: NAMES.get(operation)!, earlier: Buffer.from(earlier), isPartial });
          if (changes.length >= limit) break;
        }
      }
      left -= seen;
      if (seen === 0 || before <= 1) return { changes, next: null };
      if (left <= 0 || changes.length >= limit) return { changes, next: before };
    }
    await nextTurn();
  }
}
