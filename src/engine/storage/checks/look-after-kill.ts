import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { damagedFile } from '../storage-error.js';
import { DATA_FILE } from '../file/environment.js';
import { claimMarks, listMarks } from '../file/open-marks.js';
import type { LookReport } from './look-process.js';

/** A start waits no longer: the look through a store of more than a million documents goes on beside it. */
const WAIT_MS = 5_000;
/** How often is looked whether another process is done with it. */
const POLL_MS = 50;

const IS_SOURCE = import.meta.url.endsWith('.ts');
const ENTRY = fileURLToPath(new URL(IS_SOURCE ? './look-process.ts' : './look-process.js', import.meta.url));

/** Signals by which a process ends itself when it is led to memory that is not its own. */
const OWN_SIGNALS: ReadonlySet<unknown> = new Set(['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP']);

/**
 * To be called before a store is opened. When a process that had it open ended by a signal, a process of its own looks
 * through the pages first: a damaged one may have been the cause, and would end each process that reads it. Throws
 * DAMAGED for one that was found in time.
 */
export async function lookAfterKill(dataDir: string, waitMs = WAIT_MS): Promise<void> {
  if (!existsSync(join(dataDir, DATA_FILE))) return;
  const ends = performance.now() + waitMs;
  while (performance.now() < ends) {
    const marks = listMarks(dataDir);
    if (marks.some(({ kind, isAlive }) => kind === 'looking' && isAlive)) {
      await wait(POLL_MS);
      continue;
    }
    const dead = marks.filter(({ isAlive }) => !isAlive);
    if (dead.length === 0) return;
    const claim = claimMarks(dataDir, dead);
    if (claim === null) continue;
    const child = await startLook(dataDir, claim.path);
    const damage = await within(child.looked, ends - performance.now());
    if (damage === undefined) {
      child.goOnBeside();
      return;
    }
    // Only the child, which has found everything whole, removes it.
    claim.giveBack();
    if (damage !== null) throw damagedFile(join(dataDir, DATA_FILE), damage);
    return;
  }
}

interface Look {
  /** What is damaged; null: nothing, or it could not be looked. */
  readonly looked: Promise<string | null>;
  /** To be called when nobody waits any more: it works in the background and does not keep this process alive. */
  goOnBeside(): void;
}

async function startLook(dataDir: string, mark: string): Promise<Look> {
  // Hardly any start needs it.
  const { fork } = await import('node:child_process');
  const execArgv = IS_SOURCE ? ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href] : [];
  const child = fork(ENTRY, [dataDir, mark], { execArgv, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  const looked = new Promise<string | null>((resolve) => {
    let report: LookReport | null = null;
    child.once('message', (told) => (report = told as LookReport));
    // Not before: until then the store is open in another process.
    child.once('exit', (_code, signal) => {
      const ended = OWN_SIGNALS.has(signal) ? `the process that looked through it ended by ${signal}` : null;
      resolve(report ? report.damage : ended);
    });
    // What keeps it from starting says nothing about the store.
    child.once('error', () => {
      resolve(null);
    });
  });
  const goOnBeside = (): void => {
    child.unref();
    child.channel?.unref();
    try {
      setPriority(child.pid!, constants.priority.PRIORITY_LOW);
    } catch {
      // It has just ended.
    }
  };
  return { looked, goOnBeside };
}

/** What the work gives; undefined when it takes longer. */
async function within<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  const patience = new AbortController();
  try {
    return await Promise.race([work, wait(ms, undefined, { signal: patience.signal })]);
  } finally {
    patience.abort();
  }
}
