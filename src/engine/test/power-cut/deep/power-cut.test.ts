import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEngine, verifyDataFile } from '../../../index.js';
import { DATA_FILE } from '../../../storage/file/environment.js';
import { openRandom } from '../../helpers/random.js';
import { restartMachine } from '../../helpers/restart-machine.js';
import { openSeed } from '../../helpers/seed.js';
import { temporaryDir } from '../../transports.js';
import { type Change, type Entry, GROUP_SIZE, type Line } from '../model.js';

/** BSVC_TEST_CUTS=200 for the long form. */
const CUTS = Number(process.env['BSVC_TEST_CUTS'] ?? 25);
/** By each of three hands of each writer. */
const CHANGES = 60;
const PAGE_BYTES = 4096;
const SECTOR_BYTES = 512;
/** Where LMDB writes its record of a commit, within each of the first two pages. */
const META_AT = 40;

interface JournalRecord {
  readonly kind: 'W' | 'B' | 'S' | 'A';
  readonly offset: number;
  readonly bytes: Buffer;
}

const SEED = openSeed('power cuts');
const dir = temporaryDir();
const library = join(dir, 'journal-writes.so');
const source = join(import.meta.dirname, '../journal-writes.c');
const compiled = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl', '-lpthread'], {
  encoding: 'utf8',
});
const canCut = process.platform === 'linux' && compiled.status === 0;
if (!canCut) console.log(`Power is not cut: ${compiled.error?.message ?? compiled.stderr}`);

/**
 * Two processes write, one of them is killed between two of its calls, and a third one goes on in its place. Every
 * write to the data file and every sync of it are noted in their order. A cut is a moment among them: what a sync that
 * has ended was about is there, of the rest each page, the first sectors of it, or nothing, by chance, and the end of
 * the file may be missing.
 */
describe.skipIf(!canCut)('a power cut at any moment', { timeout: 600_000 }, () => {
  const random = openRandom(SEED);
  let journal: JournalRecord[];

  beforeAll(async () => {
    mkdirSync(join(dir, 'data'));
    const beside = runWriter(SEED + 1, 0);
    expect(await runWriter(SEED, 200 + random.below(600))).toBe('SIGKILL');
    expect(await runWriter(SEED + 2, 0)).toBe(0);
    expect(await beside).toBe(0);
    journal = readJournal(readFileSync(join(dir, 'journal')));
  });
  afterAll(() => {
    rmSync(dir, { recursive: true, force: true });
  });

  it('has noted every write: replayed whole, the journal gives the file', async () => {
    expect(linesOf(journal).filter(({ isDone }) => isDone).length).toBeGreaterThan(2 * CHANGES * 3);
    const image = replay(journal.length, { ignoreSyncs: false, all: true });
    const file = readFileSync(join(dir, 'data', DATA_FILE));
    expect(image.equals(file.subarray(0, image.length))).toBe(true);
    expect(await judge(image, journal.length)).toEqual([]);
  });

  it('shows that a commit is written only when the disk has the one before, by whichever process', () => {
    let commits = 0;
    let lastAt = -1;
    const early: number[] = [];
    for (const [n, record] of journal.entries()) {
      if (record.kind !== 'W' || ![META_AT, PAGE_BYTES + META_AT].includes(record.offset)) continue;
      const synced = journal.slice(lastAt, n).filter(({ kind }) => kind === 'B' || kind === 'S');
      const begun = synced.filter(({ kind }) => kind === 'B').map(({ offset }) => offset);
      if (commits > 0 && !synced.some(({ kind, offset }) => kind === 'S' && begun.includes(offset))) early.push(n);
      commits++;
      lastAt = n;
    }
    expect(commits).toBeGreaterThan(CHANGES);
    expect(early).toEqual([]);
  });

  it(`loses nothing that was acknowledged, leaves nothing half, and is whole: ${CUTS} cuts`, async () => {
    const wrong: unknown[] = [];
    for (let n = 0; n < CUTS; n++) {
      const cut = momentAfterFirstAcknowledgement();
      const problems = await judge(replay(cut, { ignoreSyncs: false, all: false }), cut);
      if (problems.length > 0) wrong.push({ cut, problems });
    }
    console.log(`${CUTS} cuts among ${journal.length} records: ${wrong.length} with a loss or damage`);
    expect(wrong).toEqual([]);
  });

  it('would be seen to lose or damage something if syncs did nothing', async () => {
    let wrong = 0;
    for (let n = 0; n < CUTS; n++) {
      const cut = momentAfterFirstAcknowledgement();
      if ((await judge(replay(cut, { ignoreSyncs: true, all: false }), cut)).length > 0) wrong++;
    }
    console.log(`control, syncs ignored: ${wrong} of ${CUTS} cuts with a loss or damage`);
    expect(wrong).toBeGreaterThan(CUTS * 0.8);
  });

  /** Resolves to how it ended; `calls`: after how many it is killed, 0 for never. */
  function runWriter(seed: number, calls: number): Promise<number | string | null> {
    const script = join(import.meta.dirname, '../power-cut-writer.ts');
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', script, join(dir, 'data'), String(CHANGES), String(seed)],
      {
        stdio: ['ignore', 'inherit', 'inherit'],
        env: {
          ...process.env,
          LD_PRELOAD: library,
          POWER_JOURNAL: join(dir, 'journal'),
          POWER_KILL: String(calls),
        },
      },
    );
    return new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('exit', (code, signal) => {
        resolve(signal ?? code);
      });
    });
  }

  function momentAfterFirstAcknowledgement(): number {
    const first = journal.findIndex((record) => record.kind === 'A' && linesOf([record])[0]!.isDone);
    return first + 1 + random.below(journal.length - first - 1);
  }

  /** The file as it is when the power comes back after the first `cut` records. */
  function replay(cut: number, { ignoreSyncs, all }: { ignoreSyncs: boolean; all: boolean }): Buffer {
    const before = journal.slice(0, cut);
    const isEnded = (sync: JournalRecord): boolean =>
      before.some(({ kind, offset }) => kind === 'S' && offset === sync.offset);
    const lastSync = ignoreSyncs ? -1 : before.findLastIndex((record) => record.kind === 'B' && isEnded(record));
    const endOf = (records: readonly JournalRecord[]): number =>
      Math.max(0, ...records.map(({ kind, offset, bytes }) => (kind === 'W' ? offset + bytes.length : 0)));
    const isWholeLength = all || ignoreSyncs || random.chance(0.5);
    const image = Buffer.alloc(endOf(isWholeLength ? before : before.slice(0, lastSync)));
    for (const [n, { kind, offset, bytes }] of before.entries()) {
      if (kind !== 'W') continue;
      if (all || n < lastSync) {
        bytes.copy(image, offset);
        continue;
      }
      for (let at = 0; at < bytes.length;) {
        // LMDB's pages, and smaller writes within a sector.
        const page = bytes.subarray(at, at + PAGE_BYTES - ((offset + at) % PAGE_BYTES));
        const sectors = Math.ceil(page.length / SECTOR_BYTES);
        const kept = [0, sectors, random.below(sectors)][random.below(3)]!;
        // Nothing grows the file beyond its length.
        if (offset + at < image.length) page.copy(image, offset + at, 0, kept * SECTOR_BYTES);
        at += page.length;
      }
    }
    return image;
  }

  /** What is wrong with the store of this file, for changes that were acknowledged before the cut. */
  async function judge(image: Buffer, cut: number): Promise<string[]> {
    const dataDir = join(dir, 'cut');
    rmSync(dataDir, { recursive: true, force: true });
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, DATA_FILE), image);
    restartMachine(join(dataDir, DATA_FILE));
    const damage = await verifyDataFile(dataDir);
    if (damage.length > 0) return damage;
    const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
    const items = engine.db('d').collection<Entry>('items');
    try {
      const problems = compare(await items.find().toArray(), linesOf(journal.slice(0, cut)));
      await items.insertOne({ _id: 'new', slot: 'new', n: 0, group: '', isDeleted: false, text: '' });
      return [...problems, ...(await engine.verify())];
    } finally {
      await engine.close();
    }
  }
});

function linesOf(records: readonly JournalRecord[]): Line[] {
  return records.filter(({ kind }) => kind === 'A').map(({ bytes }) => JSON.parse(bytes.toString()) as Line);
}

/** Of each hand the change that was under way may be there, or not. */
function compare(entries: readonly Entry[], lines: readonly Line[]): string[] {
  const wanted = new Map<string, number>();
  const groups = new Set<string>();
  const underWay = new Map<string, Change>();
  for (const { hand, change, isDone } of lines) {
    underWay.set(hand, change);
    if (!isDone) continue;
    underWay.delete(hand);
    if ('group' in change) groups.add(change.group);
    else if (change.n === null) wanted.delete(change.id);
    else wanted.set(change.id, change.n);
  }
  const problems: string[] = [];
  const pending = [...underWay.values()];
  const found = new Map(entries.filter(({ group }) => group === '').map(({ _id, n }) => [_id, n]));
  for (const id of new Set([...wanted.keys(), ...found.keys()])) {
    if (wanted.get(id) === found.get(id)) continue;
    const isPending = pending.some(
      (change) => 'id' in change && change.id === id && (change.n ?? undefined) === found.get(id),
    );
    if (!isPending) problems.push(`${id}: ${found.get(id)} instead of ${wanted.get(id)}`);
  }
  const sizes = new Map<string, number>();
  for (const { group } of entries) if (group !== '') sizes.set(group, (sizes.get(group) ?? 0) + 1);
  for (const [group, size] of sizes) {
    if (size !== GROUP_SIZE) problems.push(`of the group ${group} there are ${size}`);
    const isPending = pending.some((change) => 'group' in change && change.group === group);
    if (!groups.has(group) && !isPending) problems.push(`the group ${group} was never acknowledged`);
  }
  for (const group of groups) if (!sizes.has(group)) problems.push(`the group ${group} is lost`);
  return problems;
}

function readJournal(bytes: Buffer): JournalRecord[] {
  const records: JournalRecord[] = [];
  for (let at = 0; at < bytes.length;) {
    const kind = String.fromCharCode(bytes[at]!) as JournalRecord['kind'];
    const offset = Number(bytes.readBigInt64LE(at + 1));
    const length = Number(bytes.readBigInt64LE(at + 9));
    records.push({ kind, offset, bytes: bytes.subarray(at + 17, at + 17 + length) });
    at += 17 + length;
  }
  return records;
}
