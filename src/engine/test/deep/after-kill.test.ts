import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readdirSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { lookAfterKill, openEngine } from '../../index.js';
import { DATA_FILE } from '../../storage/file/environment.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { flipBit, mapPages, PAGE_BYTES } from '../page-map.js';
import { temporaryDir } from '../transports.js';

const SEED = openSeed('damage before a kill');
/** Of a page's header: its number and its kind. */
const HEADER_PARTS = [0, 18];
const DAMAGES = 4;

let dataDir: string;
beforeEach(async () => {
  dataDir = temporaryDir();
  const engine = openEngine({ dataDir, durability: 'relaxed' });
  const items = engine.db('d').collection<{ _id: string; text: string }>('items');
  const docs = Array.from({ length: 2_000 }, (_, n) => ({ _id: `stored ${n}`, text: `text ${n} `.repeat(10) }));
  await items.insertMany(docs);
  await items.deleteMany({ _id: { $gte: 'stored 15' } });
  await engine.close();
});
afterEach(() => {
  rmSync(dataDir, { recursive: true, force: true });
});

const marks = (): string[] => readdirSync(dataDir).filter((name) => /^(open|looking)\./.test(name));

interface Holder {
  child: ChildProcess;
  /** What it answers to a line. */
  tell(line: string): Promise<string>;
  end(signal: 'SIGKILL' | 'SIGSEGV'): Promise<void>;
}

/** A process that has the store open. */
async function holdOpen(): Promise<Holder> {
  const script = join(import.meta.dirname, '../after-kill-process.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', script, dataDir], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => String((await lines.next()).value);
  expect(await next()).toBe('open');
  return {
    child,
    tell(line) {
      child.stdin.write(`${line}\n`);
      return next();
    },
    async end(signal) {
      const ended = once(child, 'exit');
      child.kill(signal);
      await ended;
    },
  };
}

describe('a store whose process ended by a signal', () => {
  it.each(['SIGKILL', 'SIGSEGV'] as const)('is looked through once and opens: %s', async (signal) => {
    const holder = await holdOpen();
    expect(await holder.tell('before')).toBe('written');
    await holder.end(signal);
    expect(marks()).toHaveLength(1);
    // Several that start at once look through it once, and all of them open it.
    await Promise.all([lookAfterKill(dataDir, 60_000), lookAfterKill(dataDir, 60_000)]);
    expect(marks()).toEqual([]);
    const engine = openEngine({ dataDir });
    expect(await engine.db('d').collection<{ _id: string }>('items').findOne({ _id: 'before' })).not.toBeNull();
    expect(await engine.verify()).toEqual([]);
    await engine.close();
    expect(marks()).toEqual([]);
  });

  it('is not opened while a page of it cannot be read, whichever, and is when that is mended', async () => {
    const holder = await holdOpen();
    await holder.end('SIGKILL');
    const random = openRandom(SEED);
    const pages = mapPages(dataDir).filter(({ kind }) => kind !== 'unused' && kind !== 'meta' && kind !== 'large');
    for (let n = 0; n < DAMAGES; n++) {
      const page = pages[random.below(pages.length)]!;
      const at = page.number * PAGE_BYTES + HEADER_PARTS[n % HEADER_PARTS.length]!;
      flipBit(dataDir, at, n % 3);
      await expect(lookAfterKill(dataDir, 60_000), `page ${page.number}`).rejects.toMatchObject({
        code: 'DAMAGED',
        message: expect.stringMatching(/\(page \d+: .*bsvc doctor --repair/) as string,
      });
      flipBit(dataDir, at, n % 3);
    }
    await lookAfterKill(dataDir, 60_000);
    expect(marks()).toEqual([]);
  });

  it('is found whole while others write, whenever its garbage is collected', async () => {
    const engine = openEngine({ dataDir, durability: 'relaxed' });
    const items = engine.db('d').collection<{ _id: string; text: string }>('items');
    await items.insertMany(Array.from({ length: 30_000 }, (_, n) => ({ _id: `more ${n}`, text: 'x'.repeat(500) })));
    const looking = fork(join(import.meta.dirname, '../../storage/checks/look-process.ts'), [dataDir, ''], {
      // So often that it is collected in each step.
      execArgv: ['--import', 'tsx', '--gc-interval=300'],
    });
    const ended = once(looking, 'exit');
    const [report] = await Promise.all([
      once(looking, 'message').then(([told]) => told as { damage: string | null }),
      (async () => {
        for (let n = 0; looking.exitCode === null; n++) {
          const ids = Array.from({ length: 100 }, (_, k) => `more ${(n * 7 + k * 300) % 30_000}`);
          await items.updateMany({ _id: { $in: ids } }, { $set: { text: `${n}`.repeat(100) } });
        }
      })(),
    ]);
    await ended;
    expect(report).toEqual({ damage: null });
    await engine.close();
  });

  it('that it has closed is not looked through: there is no mark', async () => {
    const holder = await holdOpen();
    expect(marks()).toHaveLength(1);
    const ended = once(holder.child, 'exit');
    holder.child.stdin!.end('close\n');
    await ended;
    expect(marks()).toEqual([]);
  });
});

describe('a store whose lock file is removed while a process has it open', () => {
  it.each(['removed', 'replaced'])('is written by nobody: the lock file is %s', async (how) => {
    const holder = await holdOpen();
    expect(await holder.tell('before')).toBe('written');
    const lock = join(dataDir, `${DATA_FILE}-lock`);
    if (how === 'replaced') copyFileSync(lock, `${lock}-copy`);
    rmSync(lock);
    if (how === 'replaced') copyFileSync(`${lock}-copy`, lock);
    expect(await holder.tell('after')).toBe('REPLACED');
    expect(() => openEngine({ dataDir })).toThrow(
      expect.objectContaining({ code: 'BUSY', message: expect.stringMatching(/process \d+ .*End that process/) }),
    );
    await holder.end('SIGKILL');
    await lookAfterKill(dataDir, 60_000);
    const engine = openEngine({ dataDir });
    const items = engine.db('d').collection<{ _id: string }>('items');
    expect(await items.findOne({ _id: 'before' })).not.toBeNull();
    expect(await items.findOne({ _id: 'after' })).toBeNull();
    expect(await engine.verify()).toEqual([]);
    await engine.close();
  });
});
