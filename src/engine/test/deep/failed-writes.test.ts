import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { lookAfterKill, openEngine } from '../../index.js';
import { temporaryDir } from '../transports.js';

const dir = temporaryDir();
const library = join(dir, 'fail-writes.so');
const source = join(import.meta.dirname, '../fail-writes.c');
const compiled = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], { encoding: 'utf8' });
const canFail = process.platform === 'linux' && compiled.status === 0;
if (!canFail) console.log(`Writes do not fail: ${compiled.error?.message ?? compiled.stderr}`);
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});

const { EIO, ENOSPC } = constants.errno;
/** What fails, by which error, how often; what is told of it, and whether the same process writes again afterwards. */
const FAULTS = [
  { part: 'meta', error: EIO, times: 1, code: 'FAILED', goesOn: false },
  { part: 'meta', error: EIO, times: -1, code: 'FAILED', goesOn: false },
  { part: 'meta', error: ENOSPC, times: 1, code: 'NO_SPACE', goesOn: false },
  { part: 'data', error: EIO, times: -1, code: 'FAILED', goesOn: true },
  { part: 'data', error: ENOSPC, times: -1, code: 'NO_SPACE', goesOn: true },
  { part: 'sync', error: EIO, times: -1, code: 'FAILED', goesOn: false },
];

describe.skipIf(!canFail)('a disk that refuses a write', () => {
  it.each(FAULTS)(
    'is told by its name, and leaves every commit before: $part, error $error, $times times',
    async (fault) => {
      const dataDir = temporaryDir();
      const order = join(dir, 'order');
      writeFileSync(order, 'none 0 0\n');
      const { next, write, end } = startWriter(dataDir, { LD_PRELOAD: library, FAIL_WRITES: order });
      onTestFinished(() => {
        rmSync(dataDir, { recursive: true, force: true });
      });
      expect(await next()).toBe('open');
      const acknowledged: string[] = [];
      for (const id of ['a', 'b', 'c']) {
        expect(await write(id)).toBe('written');
        acknowledged.push(id);
      }
      writeFileSync(order, `${fault.part} ${fault.error} ${fault.times}\n`);
      expect(await write('refused')).toBe(fault.code);
      writeFileSync(order, 'none 0 0\n');
      expect(await write('after')).toBe(fault.goesOn ? 'written' : 'FAILED');
      if (fault.goesOn) acknowledged.push('after');
      await end();
      await lookAfterKill(dataDir, 60_000);
      const engine = openEngine({ dataDir });
      const items = engine.db('d').collection<{ _id: string; text: string }>('items');
      expect((await items.find().toArray()).map(({ _id }) => _id).sort()).toEqual(acknowledged.sort());
      await items.insertOne({ _id: 'new', text: '' });
      expect(await engine.verify()).toEqual([]);
      await engine.close();
    },
  );

  it('is not written to by any process after a failed sync, and opens again when none has it open', async () => {
    const dataDir = temporaryDir();
    const order = join(dir, 'order');
    writeFileSync(order, 'none 0 0\n');
    const failing = startWriter(dataDir, { LD_PRELOAD: library, FAIL_WRITES: order });
    const other = startWriter(dataDir, {});
    onTestFinished(() => {
      rmSync(dataDir, { recursive: true, force: true });
    });
    expect([await failing.next(), await other.next()]).toEqual(['open', 'open']);
    expect(await failing.write('kept')).toBe('written');
    writeFileSync(order, `sync ${EIO} 1\n`);
    expect(await failing.write('refused')).toBe('FAILED');
    expect(await other.write('behind it')).toBe('FAILED');
    await failing.end();
    expect(() => openEngine({ dataDir })).toThrow(expect.objectContaining({ code: 'BUSY' }));
    await other.end();
    const engine = openEngine({ dataDir });
    const items = engine.db('d').collection<{ _id: string; text: string }>('items');
    expect((await items.find().toArray()).map(({ _id }) => _id)).toEqual(['kept']);
    await items.insertOne({ _id: 'new', text: '' });
    expect(await engine.verify()).toEqual([]);
    await engine.close();
  });
});

interface Writer {
  next(): Promise<string>;
  write(id: string): Promise<string>;
  end(): Promise<void>;
}

function startWriter(dataDir: string, env: NodeJS.ProcessEnv): Writer {
  const script = join(import.meta.dirname, '../after-kill-process.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', script, dataDir], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { ...process.env, ...env },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => String((await lines.next()).value);
  const ended = once(child, 'exit');
  return {
    next,
    write: (id) => {
      child.stdin.write(`${id}\n`);
      return next();
    },
    end: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
