import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { tmpdir } from 'node:os';

const DRAFT = /^(.+)\.(\d+)\.part$/;
const WORK_FOLDER = /^bsvc-backup-(\d+)-\w{6}$/;
/** Names that backups get where none is given, with those of the schedule. */
const BACKUP = /^bsvc-[-\dTZ]+\.backup$/;

/** The name of a file that this process works on until it is whole. */
export function nameDraft(path: string): string {
  return `${path}.${process.pid}.part`;
}

/** A new folder for a backup's work; to be removed by who made it. */
export function makeWorkFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), `bsvc-backup-${process.pid}-`));
}

/**
 * Removes what backups that were killed have left beside `path` and in the system's folder for temporary files: as much
 * as the whole store each time. What a running process works on stays.
 */
export async function removeDrafts(path: string): Promise<void> {
  await removeOrphans(dirname(path), (name) => {
    const [, file = '', pid] = DRAFT.exec(name) ?? [];
    return file === basename(path) || BACKUP.test(file) ? Number(pid) : null;
  });
  await removeOrphans(tmpdir(), (name) => Number(WORK_FOLDER.exec(name)?.[1] ?? NaN));
}

/** `ownerOf`: the process that made what has the name; null or NaN for what is none of ours. */
async function removeOrphans(folder: string, ownerOf: (name: string) => number | null): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const pid = ownerOf(name);
    if (pid === null || Number.isNaN(pid) || isRunning(pid)) continue;
    // Another user's cannot be removed, and is not ours to remove.
    await rm(join(folder, name), { recursive: true, force: true }).catch(() => undefined);
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
