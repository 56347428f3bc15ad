import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Engine, openEngine } from '../../index.js';
import { DATA_FILE } from '../../storage/file/environment.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { type Item, look, type Sight } from '../one-moment.js';
import { temporaryDir } from '../transports.js';

/** BSVC_TEST_ROUNDS=200 for the long form. */
const ROUNDS = Number(process.env['BSVC_TEST_ROUNDS'] ?? 25);
const SEED = openSeed('one moment');
/** Where the lock file has the id of the last commit. */
const NOTE_AT = 8;

const dataDir = temporaryDir();
// Where the packages are found that it needs; started from its sources a process takes a second.
const built = join(import.meta.dirname, '../../../..', 'node_modules', `.one-moment-${process.pid}`);
const program = join(built, 'process.mjs');

function start(...words: string[]): ChildProcess {
  return spawn(process.execPath, [program, ...words], { stdio: ['pipe', 'pipe', 'inherit'] });
}

/** Lines of a process, one at a time. */
function linesOf(child: ChildProcess): () => Promise<string> {
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  return async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error('the process has ended');
    return value as string;
  };
}

describe('lists, counts and pages after a writer was killed', { timeout: 900_000 }, () => {
  const random = openRandom(SEED);
  let engine: Engine;
  let reader: ChildProcess;
  let readerSays: () => Promise<string>;
  // Closing it would end the locks that this process has there.
  let lockFile: number;

  beforeAll(async () => {
    mkdirSync(built, { recursive: true });
    const entry = join(import.meta.dirname, '../one-moment-process.ts');
    buildSync({
      entryPoints: [entry],
      outfile: program,
      bundle: true,
      platform: 'node',
      format: 'esm',
      packages: 'external',
    });
    engine = openEngine({ dataDir, countBy: 'isDeleted' });
    await engine
      .db('d')
      .collection<Item>('items')
      .createIndexes([
        { key: { state: 1, n: 1 }, name: 'state' },
        { key: { n: 1 }, name: 'n' },
      ]);
    lockFile = openSync(join(dataDir, `${DATA_FILE}-lock`), 'r+');
    reader = start('read', dataDir);
    readerSays = linesOf(reader);
  });
  async function askReader(): Promise<Sight> {
    reader.stdin!.write('look\n');
    return JSON.parse(await readerSays()) as Sight;
  }

  /** The last commit that readers begin from. */
  function readNote(): bigint {
    const note = Buffer.alloc(8);
    readSync(lockFile, note, 0, 8, NOTE_AT);
    return note.readBigUInt64LE(0);
  }

  /** Leaves the lock file as a process does that is killed when it has committed and not noted it. */
  function takeNoteBack(): void {
    const note = Buffer.alloc(8);
    note.writeBigUInt64LE(readNote() - 1n);
    writeSync(lockFile, note, 0, 8, NOTE_AT);
  }

  /** What is seen while the note stays the same: setting it right is what makes another commit seen. */
  async function atOneNote(see: () => Promise<Sight>): Promise<Sight> {
    for (;;) {
      const before = readNote();
      const sight = await see();
      if (readNote() === before) return sight;
    }
  }

  afterAll(async () => {
    reader.stdin!.end();
    await once(reader, 'close');
    await engine.close();
    closeSync(lockFile);
    rmSync(dataDir, { recursive: true, force: true });
    rmSync(built, { recursive: true, force: true });
  });

  it(`are of one moment in every process that goes on: ${ROUNDS} rounds`, async () => {
    const different: unknown[] = [];
    let behind = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const writer = start('write', dataDir, String(round));
      const closed = once(writer, 'close');
      const writerSays = linesOf(writer);
      // Killed somewhere in the commits that follow this many, at no certain place of one.
      for (let left = 3 + random.below(20); left > 0; left--) await writerSays();
      await wait(random.below(8));
      writer.kill('SIGKILL');
      await closed;
      // Between the commit and its note is a moment that few kills meet: every other round is made to have met it.
      if (round % 2 === 1) takeNoteBack();
      const sights: [string, Sight][] = [
        ['first', await atOneNote(() => look(engine))],
        ['second', await atOneNote(askReader)],
        ['first again', await atOneNote(() => look(engine))],
      ];
      for (const [who, { answers }] of sights) {
        for (const [what, numbers] of Object.entries(answers)) {
          if (new Set(numbers).size > 1) different.push({ round, who, what, numbers });
        }
      }
      // Seen by one process and not by the other: allowed until the note of the commit is set right, and counted.
      if (JSON.stringify(sights[0]![1]) !== JSON.stringify(sights[1]![1])) behind++;
    }
    console.log(`${ROUNDS} rounds, ${behind} in which a process saw the last commit later than another`);
    expect(different).toEqual([]);
    expect(await engine.verify()).toEqual([]);
  });
});
