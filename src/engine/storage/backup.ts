import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { CopyReport } from './copy-process.js';
import { syncToDisk } from './sync-to-disk.js';
import { translateStorageError } from './file/translate-error.js';
import { StorageError } from './storage-error.js';

const IS_SOURCE = import.meta.url.endsWith('.ts');
const ENTRY = fileURLToPath(new URL(IS_SOURCE ? './copy-process.ts' : './copy-process.js', import.meta.url));

/**
 * Writes a consistent copy of the data file, as of one moment, to `path` while reading and writing go on, and verifies
 * it, both in a separate process: whatever is damaged ends that process at most. The copy appears under its name when
 * it is complete, verified and on the disk. Throws DAMAGED, with what is damaged as its message.
 */
export async function copyDataFile(from: string, path: string, signal?: AbortSignal): Promise<void> {
  const partial = `${path}.part`;
  try {
    removePartial(partial);
    const report = await runCopy(from, partial, signal);
    if ('error' in report) throw Object.assign(new Error(report.error.message), report.error);
    if (report.problems.length > 0) throw new StorageError('DAMAGED', report.problems[0]!);
    renameSync(partial, path);
    syncToDisk(dirname(path));
    removePartial(partial);
  } catch (error) {
    removePartial(partial);
    throw translateStorageError(error, path);
  }
}

/** The file with its lock, and the one that was to replace it. */
function removePartial(partial: string): void {
  for (const end of ['', '-lock', '.new', '.new-lock']) rmSync(`${partial}${end}`, { force: true });
}

function runCopy(from: string, to: string, signal?: AbortSignal): Promise<CopyReport> {
  signal?.throwIfAborted();
  const execArgv = IS_SOURCE ? ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href] : [];
  const child = fork(ENTRY, [from, to], { execArgv, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  const stop = (): void => void child.kill('SIGKILL');
  signal?.addEventListener('abort', stop);
  return new Promise<CopyReport>((resolve, reject) => {
    child.once('message', (report) => {
      resolve(report as CopyReport);
      child.disconnect();
    });
    child.once('error', reject);
    child.once('exit', (code, ended) => {
      if (signal?.aborted === true) reject(signal.reason as Error);
      const end = ended === null ? `with exit code ${code}` : `by ${ended}`;
      reject(new StorageError('DAMAGED', `The process that copies the data file ${from} was ended ${end}.`));
    });
  }).finally(() => {
    signal?.removeEventListener('abort', stop);
  });
}
