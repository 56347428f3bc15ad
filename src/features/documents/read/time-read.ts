import type { App } from '../../../app.js';
import type { TimedRead } from '../../../platform/database/slow-reads.js';
import { documentsName, type Collection } from '../../collections/collection.js';

/** MongoDB's code for a read that its time limit ended. */
const TIME_LIMIT = 50;

/** Runs a read and reports it to a database that wants to know: one that cannot say by itself what it looked at. */
export function timeRead<T>(
  { db }: Pick<App, 'db'>,
  collection: Collection,
  read: Pick<TimedRead, 'command' | 'filter' | 'sort'>,
  run: () => Promise<T>,
  isOver: (answer: T) => boolean,
): Promise<T> {
  if (!db.noteRead) return run();
  const startMs = performance.now();
  return runAndNote(run, isOver, (over) =>
    db.noteRead?.({ ...read, name: documentsName(collection), tookMs: performance.now() - startMs, isOver: over }),
  );
}

async function runAndNote<T>(
  run: () => Promise<T>,
  isOver: (answer: T) => boolean,
  note: (isOver: boolean) => void,
): Promise<T> {
  try {
    const answer = await run();
    note(isOver(answer));
    return answer;
  } catch (error) {
    if ((error as { code?: unknown }).code === TIME_LIMIT) note(true);
    throw error;
  }
}
