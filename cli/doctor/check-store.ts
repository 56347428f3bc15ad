import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import type { Database } from '../../src/platform/database/database.js';
import { presentBytes } from '../view/present-amount.js';
import { failed, passed, type CheckResult } from './check.js';

/** The age beyond which a snapshot is not an ordinary read's. */
const HELD_MS = 1_000;

/**
 * The file of the embedded store: its size, what of it is free, and who keeps free pages from being used; nothing for a
 * MongoDB.
 */
export async function checkStore(db: Database): Promise<CheckResult[]> {
  if (!db.stats || !db.listSnapshots) return [];
  const { fileBytes, freeBytes } = db.stats();
  const size = `${presentBytes(fileBytes!)}, ${presentBytes(freeBytes!)} of them free`;
  if (othersAt(db).length === 0) return [passed('data file', size)];
  const seenAt = performance.now();
  // A timer counts from when the turn began in which it was set: it may come too early for the ages.
  for (let left = HELD_MS; left > 0; left = HELD_MS - (performance.now() - seenAt)) await wait(left);
  const held = othersAt(db).filter(({ ageMs }) => ageMs >= HELD_MS);
  if (held.length === 0) return [passed('data file', size)];
  const stopped: number[] = [];
  for (const { pid } of held) if (await isStopped(pid)) stopped.push(pid);
  if (stopped.length === 0) {
    return [
      passed('data file', `${size}; process ${held.map(({ pid }) => pid).join(', ')} is reading from a snapshot`),
    ];
  }
  const pids = stopped.join(' ');
  return [
    failed(
      'data file',
      `${size}; it grows with every write, since a stopped process reads from it (${pids})`,
      `Let it go on or end it: kill -CONT ${pids}, kill -KILL ${pids}`,
    ),
  ];
}

function othersAt(db: Database): { pid: number; ageMs: number }[] {
  return db.listSnapshots!().filter(({ pid }) => pid !== process.pid);
}

/** True if Ctrl-Z or a debugger has stopped the process, by Linux's word; false where the system does not say. */
async function isStopped(pid: number): Promise<boolean> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return /^[Tt]/.test(line.slice(line.lastIndexOf(')') + 2));
}
