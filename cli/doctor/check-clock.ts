import { randomUUID } from 'node:crypto';
import { rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { App } from '../../src/app.js';
import { listActs } from '../../src/features/audit/audit-log.js';
import { failed, passed, type CheckResult } from './check.js';

const MAX_DRIFT_MS = 5000;
const HINT = 'Synchronise the clocks (NTP): tokens, signatures and schedules go by them.';

/**
 * Compares our clock with that of the data directory's file system and with the last stored time, without asking a time
 * server.
 */
export async function checkClock(app: App): Promise<CheckResult> {
  const driftMs = await measureFileSystem(app.config.dataDir);
  if (Math.abs(driftMs) > MAX_DRIFT_MS) {
    return failed('clock', `the data directory's file system is ${Math.round(driftMs / 1000)} s off ours`, HINT);
  }
  const [last] = await listActs(app, { limit: 1 });
  const aheadMs = last ? last.at.getTime() - Date.now() : 0;
  if (aheadMs > MAX_DRIFT_MS) {
    return failed('clock', `it stands ${Math.round(aheadMs / 1000)} s before the last recorded act`, HINT);
  }
  return passed('clock', `${new Date().toISOString()}, as the file system's and after everything stored`);
}

/** Milliseconds; a directory that cannot be written to has a check of its own. */
async function measureFileSystem(dataDir: string): Promise<number> {
  const probe = join(dataDir, `.clock-${randomUUID()}`);
  try {
    await writeFile(probe, '', { flag: 'wx' });
    return (await stat(probe)).mtimeMs - Date.now();
  } catch {
    return 0;
  } finally {
    await rm(probe, { force: true });
  }
}
