import type { App } from '../../../app.js';
import type { AskedRead } from '../../../platform/database/slow-reads.js';
import { documentsName, type Collection } from '../../collections/collection.js';

/** Runs a read of a collection's documents, so that long ones are reported. */
export function timeRead<T>(
  { db }: Pick<App, 'db'>,
  collection: Collection,
  read: Omit<AskedRead, 'name'>,
  run: () => Promise<T>,
  isOver: (answer: T) => boolean,
): Promise<T> {
  return db.timeRead({ ...read, name: documentsName(collection) }, run, isOver);
}
