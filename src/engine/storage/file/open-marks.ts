import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StorageError } from '../storage-error.js';

/** Files beside the data file: which process has it open, or looks through it, and when that process started. */
const MARK = /^(open|looking)\.(\d+)\.(\d*)$/;

/** What a process that has the data file open, or looks through it, says of itself. */
export interface ProcessMark {
  readonly path: string;
  readonly kind: 'open' | 'looking';
  readonly pid: number;
  /** False: the process ended without closing the file, by a signal. */
  readonly isAlive: boolean;
}

/** How often this process has each data directory open; the marks of what is open when it exits go then. */
const opened = new Map<string, number>();

/**
 * Marks the data file as open in this process, so that the next one knows whether it was closed; to be called before
 * LMDB opens it. Returns what removes the mark.
 */
export function markOpen(dataDir: string): () => void {
  if (opened.size === 0) process.on('exit', removeMarks);
  const path = ownMark(dataDir, 'open');
  opened.set(path, (opened.get(path) ?? 0) + 1);
  writeMark(path, '');
  return () => {
    const left = opened.get(path)! - 1;
    opened.set(path, left);
    if (left > 0) return;
    opened.delete(path);
    rmSync(path, { force: true });
    if (opened.size === 0) process.off('exit', removeMarks);
  };
}

/** Notes in this process's mark which lock file it uses; to be called when LMDB has opened it. */
export function noteLock(dataDir: string, lockPath: string): void {
  writeMark(ownMark(dataDir, 'open'), fileIdentity(lockPath) ?? '');
}

/**
 * Throws BUSY while another process has the data file open with a lock file that is not there any more: the two would
 * write at the same time, which destroys the store.
 */
export function requireSameLock(dataDir: string, lockPath: string): void {
  const current = fileIdentity(lockPath);
  const own = ownMark(dataDir, 'open');
  for (const { path, kind, pid, isAlive } of listMarks(dataDir)) {
    if (kind !== 'open' || !isAlive || path === own) continue;
    const used = readMark(path);
    if (used === '' || used === current) continue;
    throw new StorageError(
      'BUSY',
      `${lockPath} was removed while process ${pid} has the store open. End that process, then try again.`,
    );
  }
}

/** LMDB's lock file beside a data file. */
export const lockOf = (path: string): string => `${path}-lock`;

/** Which file lies at the path; null: none. */
export function fileIdentity(path: string): string | null {
  const there = statSync(path, { throwIfNoEntry: false });
  return there === undefined ? null : `${there.dev}:${there.ino}`;
}

/** The marks that processes have left in the directory. */
export function listMarks(dataDir: string): ProcessMark[] {
  return readdirSync(dataDir).flatMap((name) => {
    const [, kind, pid, start] = MARK.exec(name) ?? [];
    if (kind === undefined) return [];
    const isAlive = isRunning(Number(pid), start!);
    return [{ path: join(dataDir, name), kind: kind as ProcessMark['kind'], pid: Number(pid), isAlive }];
  });
}

/** The task of looking through a store whose processes are gone. */
export interface LookClaim {
  /** The mark, to be removed when everything is whole. */
  readonly path: string;
  /** Leaves the task to the next one that opens the store, unless it is done. */
  giveBack(): void;
}

/** Makes the marks of processes that are gone this process's task; null when another one was faster. */
export function claimMarks(dataDir: string, [first, ...others]: readonly ProcessMark[]): LookClaim | null {
  const path = ownMark(dataDir, 'looking');
  if (!moveMark(first!.path, path)) return null;
  for (const other of others) rmSync(other.path, { force: true });
  return { path, giveBack: () => void moveMark(path, first!.path) };
}

/** False when it is not there. */
function moveMark(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return false;
  }
}

function ownMark(dataDir: string, kind: ProcessMark['kind']): string {
  return join(dataDir, `${kind}.${process.pid}.${startOf(process.pid) ?? ''}`);
}

function writeMark(path: string, content: string): void {
  try {
    writeFileSync(path, content, { mode: 0o600 });
  } catch {
    // A full disk keeps nobody from reading.
  }
}

function readMark(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Its process has just closed the file.
    return '';
  }
}

function removeMarks(): void {
  for (const path of opened.keys()) rmSync(path, { force: true });
}

/** Compares the start as well: process ids are reused, above all in containers, where a service always has id 1. */
function isRunning(pid: number, start: string): boolean {
  const now = startOf(pid);
  return now !== null && (now === start || now === '' || start === '');
}

/** When a process started, in the system's own count; '' where the system does not say, null: it has ended. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Behind the program's name, which may hold anything, come its state and 18 more fields.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return /^[ZX]/.test(fields[0]!) ? null : fields[19]!;
  } catch {
    // No such process, or a system without /proc.
  }
  try {
    process.kill(pid, 0);
    return '';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? '' : null;
  }
}
