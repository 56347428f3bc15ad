import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { type ChangeLogs, DATA_FILE, type DataCollection, type Engine, openEngine } from '../../index.js';
import { restartMachine } from '../helpers/restart-machine.js';
import type { Found } from '../slow-disk-process.js';
import { temporaryDir } from '../transports.js';

const dir = temporaryDir();
const library = join(dir, 'hold-syncs.so');
const source = join(import.meta.dirname, '../hold-syncs.c');
const compiled = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], { encoding: 'utf8' });
const canHold = process.platform === 'linux' && compiled.status === 0;
if (!canHold) console.log(`Syncs are not held: ${compiled.error?.message ?? compiled.stderr}`);
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});

interface Writer {
  write(line: string): void;
  next(): Promise<string>;
  end(signal?: NodeJS.Signals): Promise<void>;
}

describe.skipIf(!canHold)('a disk that does not come back from a sync', () => {
  const hold = join(dir, 'hold');

  function startWriter(dataDir: string): Writer {
    const script = join(import.meta.dirname, '../slow-disk-process.ts');
    const child = spawn(process.execPath, ['--import', 'tsx', script, dataDir], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, LD_PRELOAD: library, HOLD_SYNCS: hold },
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const ended = once(child, 'exit');
    return {
      write: (line) => void child.stdin.write(`${line}\n`),
      next: async () => String((await lines.next()).value),
      end: async (signal) => {
        if (signal === undefined) child.stdin.end();
        else child.kill(signal);
        await ended;
      },
    };
  }

  it('keeps writes from being acknowledged, and no process from reading', async () => {
    const dataDir = join(dir, 'data');
    const first = startWriter(dataDir);
    expect(await first.next()).toBe('open');
    const second = startWriter(dataDir);
    expect(await second.next()).toBe('open');

    writeFileSync(hold, '');
    // A reader sees a change before its writer is answered. One that repeats it is answered no earlier.
    const found: Found = { reads: 500, ids: ['a'], acknowledged: 0 };
    first.write('a a');
    expect(JSON.parse(await first.next())).toEqual(found);
    // Of other processes as well; their next commit waits until the disk has this one.
    second.write('b a');
    expect(JSON.parse(await second.next())).toEqual(found);

    rmSync(hold);
    expect([await first.next(), await second.next()]).toEqual(['written', 'written']);
    await Promise.all([first.end(), second.end()]);
    const engine = openEngine({ dataDir });
    expect(await engine.db('d').collection('items').countDocuments()).toBe(2);
    expect(await engine.verify()).toEqual([]);
    await engine.close();
  });

  it.each([
    { event: 'kill -9', kept: ['a', 'b'], told: ['c'] },
    // Its number in the log of changes is used again: who has seen it has to read everything again.
    { event: 'a power loss', kept: ['a'], told: null },
  ])('leaves of a commit that was not acknowledged after $event: $kept', async ({ event, kept, told }) => {
    const dataDir = join(dir, event);
    const open = (): { engine: Engine; items: DataCollection<{ _id: string; text: string }>; logs: ChangeLogs } => {
      const engine = openEngine({ dataDir });
      return { engine, items: engine.db('d').collection('items'), logs: engine.changeLogs('d') };
    };
    const before = open();
    await before.items.insertOne({ _id: 'a', text: '' });
    const start = (await before.logs.begin('items', { first: [], omit: [] }))!;
    await before.engine.close();
    const writer = startWriter(dataDir);
    expect(await writer.next()).toBe('open');
    writeFileSync(hold, '');
    writer.write('b b');
    expect((JSON.parse(await writer.next()) as Found).ids).toEqual(['a', 'b']);
    await writer.end('SIGKILL');
    rmSync(hold);
    if (event === 'a power loss') restartMachine(join(dataDir, DATA_FILE));

    const { engine, items, logs } = open();
    expect((await items.find().toArray()).map(({ _id }) => _id)).toEqual(kept);
    await items.insertOne({ _id: 'c', text: '' });
    const search = { filter: {}, earlierAccess: {}, earlierConditions: {}, limit: 10, maxBytes: 1_000_000 };
    const found = await logs.read('items', { epoch: start.epoch, after: start.seq + 1, ...search });
    expect(found && found.changes.map(({ id }) => id)).toEqual(told);
    expect(await engine.verify()).toEqual([]);
    await engine.close();
  });
});
