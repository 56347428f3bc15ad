import type { Database } from './database.js';

/** Stands in a database that an embedded store is, or was, moved to. */
export interface MoveMark {
  _id: 'move';
  /** Identifies the moved store. */
  source: string;
  startedAt: Date;
  /** The end of the last run that verified everything; null while copying. */
  verifiedAt: Date | null;
  /** True when nothing can have changed in the store since: only then may the database be served. */
  done: boolean;
}

/** Name of the collection of the mark; it is not moved itself. */
export const MOVES = 'moves';

/** The mark of a database, or null when nothing was ever moved into it. */
export async function findMoveMark(db: Database): Promise<MoveMark | null> {
  return await db.collection<MoveMark>(MOVES).findOne({ _id: 'move' });
}

/** Sets the mark by one write. */
export async function writeMoveMark(db: Database, mark: MoveMark): Promise<void> {
  await db.collection<MoveMark>(MOVES).replaceOne({ _id: 'move' }, mark, { upsert: true });
}
