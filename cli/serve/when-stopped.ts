import { once } from 'node:events';
import type { Context } from '../shell/context.js';

/** Resolves when the process is told to stop. A closed stdout does not count: a service goes on without a reader. */
export async function whenStopped(context: Context): Promise<void> {
  if (!context.io.stop.aborted) await once(context.io.stop, 'abort');
}
