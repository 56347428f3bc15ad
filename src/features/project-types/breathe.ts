import { setImmediate } from 'node:timers/promises';

/** Lets other requests go on: what is made of all collections of a project can take long. */
export async function breathe(): Promise<void> {
  await setImmediate();
}
