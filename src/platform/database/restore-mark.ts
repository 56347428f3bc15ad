import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { conflict } from '../../errors.js';
import type { Database } from './database.js';

interface RestoreMark {
  _id: 'restore';
  /** Which run of a restore the store belongs to: the one that began last. */
  run: string;
  startedAt: Date;
}

/**
 * Holds one record while a restore is under way: a store with it is half of something. No part of any backup or move.
 */
export const RESTORES = 'restores';

const restoreStore = (db: Database) => db.collection<RestoreMark>(RESTORES);

/** True while a restore is under way, and after one that died. */
export async function isHalfRestored(db: Database): Promise<boolean> {
  return (await restoreStore(db).findOne({ _id: 'restore' })) !== null;
}

/** A serving process looks so often. */
const LOOK_MS = 250;
/** What a process began before it looked has ended by then. */
const UNDER_WAY_MS = 1_250;

const looks = new WeakMap<Database, { known: boolean; atMs: number; asking: Promise<boolean> | null }>();

/**
 * As isHalfRestored, at most a quarter of a second old, for what is asked with each request and each look for work. A
 * promise only when the database has to be asked.
 */
export function isRestoring(db: Database): boolean | Promise<boolean> {
  let look = looks.get(db);
  if (!look) looks.set(db, (look = { known: false, atMs: -LOOK_MS, asking: null }));
  if (performance.now() - look.atMs < LOOK_MS) return look.known;
  const current = look;
  return (look.asking ??= isHalfRestored(db)
    .then((known) => Object.assign(current, { known, atMs: performance.now() }).known)
    .finally(() => (current.asking = null)));
}

/** Waits until every serving process has noticed the mark and ended what it was at. */
export async function waitForOthers(): Promise<void> {
  await wait(LOOK_MS + UNDER_WAY_MS);
}

/** Sets the mark for a run, which takes the store over from any earlier one; answers the run's name. */
export async function beginRestore(db: Database): Promise<string> {
  const run = randomUUID();
  await restoreStore(db).replaceOne({ _id: 'restore' }, { run, startedAt: new Date() }, { upsert: true });
  return run;
}

/** 409 RESTORE_OVERTAKEN when another run has begun since: two that write at once would make one store of both. */
export async function requireRestoring(db: Database, run: string): Promise<void> {
  if ((await restoreStore(db).findOne({ _id: 'restore', run })) === null) throw overtaken();
}

/** Takes the mark away: the store is whole. 409 RESTORE_OVERTAKEN when it is another run's by now. */
export async function endRestore(db: Database, run: string): Promise<void> {
  if ((await restoreStore(db).deleteOne({ _id: 'restore', run })).deletedCount === 0) throw overtaken();
}

const overtaken = (): Error =>
  conflict(
    'RESTORE_OVERTAKEN',
    'Another restore of this store has begun since, and this one stopped. If that one has not ended well, run "bsvc restore" again.',
  );
