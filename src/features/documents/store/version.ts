import type { ObjectId } from 'bson';

/**
 * The time to store with a write: later than the version that it replaces, so that no two have the same `ETag`. Of
 * several expected versions one is stored; those that only a clock in the future could have given are not.
 */
export function nextVersion(nowMs: number, id: ObjectId, expected: readonly Date[] | null = null): Date {
  const stored = (expected ?? []).map((version) => version.getTime());
  const known = stored.filter((ms) => stored.length === 1 || ms <= nowMs);
  const version = Math.max(nowMs, ...known.map((ms) => ms + 1), latest.get(id.toHexString())! + 1 || 0);
  noteVersion(version, id);
  return new Date(version);
}

/** The last version that this process gave to a document, as long as the clock has not passed all of them. */
const latest = new Map<string, number>();
let newest = 0;
/** A clock that was set back by more is believed. */
const BACK_MS = 60_000;

/** Notes the version that a document begins with: a change within the same millisecond has a later one. */
export function noteVersion(version: number, id: ObjectId): void {
  if (version > newest || version < newest - BACK_MS) {
    latest.clear();
    newest = version;
  }
  latest.set(id.toHexString(), version);
}
