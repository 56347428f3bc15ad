import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { StorageError } from '../storage-error.js';

type MarkKind = 'open' | 'looking' | 'opening' | 'closing';

/** Files beside the data file: which process does what with it, and when that process started. */
const MARK = /^(open|looking|opening|closing)\.(\d+)\.(\d*)$/;

/** Openings and closings take no longer; for a process that stands still in one, nobody waits longer. */
const MAX_WAIT_MS = 10_000;
const PAUSE_MS = 1;
/** To wait in one turn of the event loop, as LMDB does: a store is opened in one. */
const paused = new Int32Array(new SharedArrayBuffer(4));

/** What a process that has the data file open, opens or closes it, or looks through it, says of itself. */
export interface ProcessMark {
  readonly path: string;
  readonly kind: MarkKind;
  readonly pid: number;
  /** False: the process ended without closing the file, by a signal. */
  readonly isAlive: boolean;
}

/** How often this process has set each of its marks; those that are left when it exits go then. */
const set = new Map<string, number>();

/**
 * Marks the data file as open in this process, so that the next one knows whether it was closed; to be called before
 * LMDB opens it. Returns what removes the mark.
 */
export function markOpen(dataDir: string): () => void {
  return setMark(dataDir, 'open');
}

/**
 * Waits until no other process closes the data file. The last one that does destroys the mutexes in the lock file; to
 * one that begins to open it then LMDB gives the destroyed ones, with which every transaction fails, for all that
 * come while it has the file open. Returns what is to be called when LMDB has opened it, or has failed to.
 */
export function beginOpening(dataDir: string): () => void {
  const ends = performance.now() + MAX_WAIT_MS;
  for (;;) {
    const endOpening = setMark(dataDir, 'opening');
    if (!isMarkedByOther(dataDir, 'closing') || performance.now() > ends) return endOpening;
    // Those that close wait for those that open: one of the two has to give way.
    endOpening();
    Atomics.wait(paused, 0, 0, PAUSE_MS);
  }
}

/** Waits until no other process opens the data file. Returns what is to be called when LMDB has closed it. */
export async function beginClosing(dataDir: string): Promise<() => void> {
  const endClosing = setMark(dataDir, 'closing');
  const ends = performance.now() + MAX_WAIT_MS;
  while (isMarkedByOther(dataDir, 'opening') && performance.now() < ends) await wait(PAUSE_MS);
  return endClosing;
}

function isMarkedByOther(dataDir: string, kind: MarkKind): boolean {
  const own = ownMark(dataDir, kind);
  try {
    return listMarks(dataDir).some((mark) => mark.kind === kind && mark.isAlive && mark.path !== own);
  } catch {
    // What was removed under the service is closed all the same.
    return false;
  }
}

/** Returns what removes it, unless this process has set it again. */
function setMark(dataDir: string, kind: MarkKind): () => void {
  if (set.size === 0) process.on('exit', removeMarks);
  const path = ownMark(dataDir, kind);
  set.set(path, (set.get(path) ?? 0) + 1);
  writeMark(path, '');
  return () => {
    const left = set.get(path)! - 1;
    set.set(path, left);
    if (left > 0) return;
    set.delete(path);
    rmSync(path, { force: true });
    if (set.size === 0) process.off('exit', removeMarks);
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
    return [{ path: join(dataDir, name), kind: kind as MarkKind, pid: Number(pid), isAlive }];
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

function ownMark(dataDir: string, kind: MarkKind): string {
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
  for (const path of set.keys()) rmSync(path, { force: true });
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
