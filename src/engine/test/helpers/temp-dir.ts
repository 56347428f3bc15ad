import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TempDir {
  path: string;
  remove(): Promise<void>;
}

/** A new empty directory that the test removes. */
export async function openTempDir(): Promise<TempDir> {
  const path = await mkdtemp(join(tmpdir(), 'bsvc-test-'));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }) };
}
