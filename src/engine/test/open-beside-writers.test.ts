import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openEngine } from '../index.js';
import { DATA_FILE } from '../storage/file/environment.js';
import { eventually } from './helpers/eventually.js';
import { killHard, holdSnapshot } from './helpers/snapshot-holder.js';
import { openEnginePerTest } from './engine-per-test.js';
import { temporaryDir } from './transports.js';

const own = openEnginePerTest();

const dir = temporaryDir();
const library = join(dir, 'hold-close.so');
const source = join(import.meta.dirname, 'hold-close.c');
const compiled = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], { encoding: 'utf8' });
const canHold = process.platform === 'linux' && compiled.status === 0;
if (!canHold) console.log(`No process is held while it closes the file: ${compiled.error?.message ?? compiled.stderr}`);
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});

const notes = () => own.engine.db('shared').collection<{ _id: number; text: string }>('notes');

async function readIds(): Promise<number[]> {
  return (await notes().find({}).sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
}

/**
 * Leaves in the lock file what a process leaves there that has looked at the data file before the last commits and
 * opens it after them. It runs in a process of its own: closing the lock file would end this one's locks.
 */
function openLate(commits: number): void {
  const script = `
    const fs = require('node:fs');
    const file = fs.openSync(process.argv[1], 'r+');
    const note = Buffer.alloc(8);
    fs.readSync(file, note, 0, 8, 8);
    note.writeBigUInt64LE(note.readBigUInt64LE() - BigInt(process.argv[2]));
    fs.writeSync(file, note, 0, 8, 8);
  `;
  execFileSync(process.execPath, ['-e', script, join(own.path, `${DATA_FILE}-lock`), String(commits)]);
}

describe('a process that opens the data file while others commit', () => {
  it.each([1, 2, 3, 16, 17])('undoes none of the last %i commits', async (commits) => {
    for (let _id = 0; _id < 20; _id++) await notes().insertOne({ _id, text: 'x'.repeat(_id * 200) });
    openLate(commits);
    await notes().insertOne({ _id: 20, text: 'after' });
    await notes().updateOne({ _id: 19 }, { $set: { text: 'changed' } });
    expect(await readIds()).toEqual(Array.from({ length: 21 }, (_, _id) => _id));
    expect(await notes().findOne({ _id: 19 })).toEqual({ _id: 19, text: 'changed' });
    expect(await own.engine.verify()).toEqual([]);
  });

  it('is itself the one that shows the last commit to all again', async () => {
    for (let _id = 0; _id < 3; _id++) await notes().insertOne({ _id, text: 'x' });
    openLate(1);
    const other = await holdSnapshot(own.path);
    try {
      expect(await readIds()).toEqual([0, 1, 2]);
    } finally {
      await killHard(other);
    }
  });
});

/*
 * The last process that closes the file destroys the mutexes of its lock file, which one that begins to open it
 * meanwhile would go on with: "No transaction to renew", for it and for all that come while it has the file open.
 */
describe('processes that open and close the data file at the same time', () => {
  /** Marks of this process are its own; its parent is another one that is alive. */
  const markOfOther = (kind: string): string => join(own.path, `${kind}.${process.ppid}.`);
  const isMarked = (kind: string): boolean => readdirSync(own.path).some((name) => name.startsWith(`${kind}.`));

  it('wait before they open it until no other closes it', async () => {
    await own.engine.close();
    const closing = markOfOther('closing');
    writeFileSync(closing, '');
    const pauses: boolean[] = [];
    vi.spyOn(Atomics, 'wait').mockImplementation(() => {
      pauses.push(isMarked('opening'));
      if (pauses.length === 3) rmSync(closing);
      return 'timed-out';
    });
    const engine = openEngine({ dataDir: own.path });
    vi.restoreAllMocks();
    // Who closes waits for them in turn, so they do not say that they open it.
    expect(pauses).toEqual([false, false, false]);
    await engine.db('shared').collection('notes').insertOne({});
    await engine.close();
    expect(['open', 'opening', 'closing'].filter(isMarked)).toEqual([]);
  });

  it('wait before they close it until no other opens it', async () => {
    const opening = markOfOther('opening');
    writeFileSync(opening, '');
    const order: string[] = [];
    const closed = own.engine.close().then(() => order.push('closed'));
    await eventually('it says that it closes the file', () => isMarked('closing'));
    order.push('opened');
    rmSync(opening);
    await closed;
    expect(order).toEqual(['opened', 'closed']);
  });

  it.skipIf(!canHold)('get mutexes that are whole from the last one before them', async () => {
    await own.engine.close();
    const go = join(dir, 'go');
    const engine = JSON.stringify(join(import.meta.dirname, '../index.ts'));
    /** A process with what it prints, line by line; `null` when it has ended. */
    const start = (script: string): { print: () => Promise<string | null>; ended: Promise<unknown> } => {
      const source = `import { writeSync } from 'node:fs'; import { openEngine } from ${engine};
        const open = () => openEngine({ dataDir: ${JSON.stringify(own.path)}, durability: 'relaxed' }); ${script}`;
      const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', source], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, LD_PRELOAD: library, HOLD_CLOSE: go },
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      const ended = once(child, 'exit').then(([code]: unknown[]) => code);
      return { ended, print: async () => ((await lines.next()).value as string | undefined) ?? null };
    };
    const closing = start('await open().close();');
    expect(await closing.print()).toBe('held');
    // It says when it waits, whether by itself or within LMDB.
    const opening = start(`
      const { wait } = Atomics;
      Atomics.wait = (...words) => (writeSync(1, 'waits\\n'), wait(...words));
      const engine = open();
      await engine.db('shared').collection('notes').insertOne({});
      await engine.close();
    `);
    expect(await opening.print()).toBe('waits');
    writeFileSync(go, '');
    expect(await Promise.all([closing.ended, opening.ended])).toEqual([0, 0]);
  });
});
