import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEngine, verifyDataFile } from '../../../index.js';
import { DATA_FILE } from '../../../storage/file/environment.js';
import { openRandom, type Random } from '../../helpers/random.js';
import { openSeed } from '../../helpers/seed.js';
import { temporaryDir } from '../../transports.js';
import { type Acknowledged, type Entry, GROUP_SIZE } from '../model.js';

/** BSVC_TEST_CUTS=200 for the long form. */
const CUTS = Number(process.env['BSVC_TEST_CUTS'] ?? 25);
const CHANGES = 600;
const PAGE_BYTES = 4096;

interface JournalRecord {
  readonly kind: 'W' | 'D' | 'S' | 'A';
  readonly offset: number;
  readonly bytes: Buffer;
}

const SEED = openSeed('power cuts');
const dir = temporaryDir();
const library = join(dir, 'journal-writes.so');
const compiled = spawnSync(
  'cc',
  ['-shared', '-fPIC', '-O1', '-o', library, join(import.meta.dirname, '../journal-writes.c'), '-ldl', '-lpthread'],
  {
    encoding: 'utf8',
  },
);
const canCut = process.platform === 'linux' && compiled.status === 0;
if (!canCut) console.log(`Power is not cut: ${compiled.error?.message ?? compiled.stderr}`);

/**
 * Every write to the data file and every sync of it are noted in their order. A cut is a moment among them: what was
 * synced before is there, of the rest each page, half of it, or nothing, by chance.
 */
describe.skipIf(!canCut)('a power cut at any moment', { timeout: 600_000 }, () => {
  const random = openRandom(SEED);
  let journal: JournalRecord[];

  beforeAll(() => {
    const data = join(dir, 'data');
    mkdirSync(data);
    const script = join(import.meta.dirname, '../power-cut-writer.ts');
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--import', 'tsx', script, data, String(CHANGES), String(SEED)],
      {
        encoding: 'utf8',
        env: { ...process.env, LD_PRELOAD: library, POWER_JOURNAL: join(dir, 'journal') },
      },
    );
    if (status !== 0) throw new Error(stderr);
    journal = readJournal(readFileSync(join(dir, 'journal')));
  });
  afterAll(() => {
    rmSync(dir, { recursive: true, force: true });
  });

  it('has noted every write: replayed whole, the journal gives the file', async () => {
    expect(journal.filter(({ kind }) => kind === 'A')).toHaveLength(CHANGES);
    expect(journal.filter(({ kind }) => kind === 'S' || kind === 'D').length).toBeGreaterThan(CHANGES);
    const image = replay(journal.length, random, { ignoreSyncs: false, all: true });
    const file = readFileSync(join(dir, 'data', DATA_FILE));
    expect(image.equals(file.subarray(0, image.length))).toBe(true);
    expect(await judge(image, journal.length)).toEqual([]);
  });

  it(`loses nothing that was acknowledged, leaves nothing half, and is whole: ${CUTS} cuts`, async () => {
    const wrong: unknown[] = [];
    for (let n = 0; n < CUTS; n++) {
      const cut = momentAfterFirstAcknowledgement();
      const problems = await judge(replay(cut, random, { ignoreSyncs: false, all: false }), cut);
      if (problems.length > 0) wrong.push({ cut, problems });
    }
    console.log(`${CUTS} cuts among ${CHANGES} changes: ${wrong.length} with a loss or damage`);
    expect(wrong).toEqual([]);
  });

  it('would be seen to lose or damage something if syncs did nothing', async () => {
    let wrong = 0;
    for (let n = 0; n < CUTS; n++) {
      const cut = momentAfterFirstAcknowledgement();
      if ((await judge(replay(cut, random, { ignoreSyncs: true, all: false }), cut)).length > 0) wrong++;
    }
    console.log(`control, syncs ignored: ${wrong} of ${CUTS} cuts with a loss or damage`);
    expect(wrong).toBeGreaterThan(CUTS * 0.8);
  });

  function momentAfterFirstAcknowledgement(): number {
    const first = journal.findIndex(({ kind }) => kind === 'A');
    return first + 1 + random.below(journal.length - first - 1);
  }

  /** The file as it is when the power comes back after the first `cut` records. */
  function replay(cut: number, random: Random, { ignoreSyncs, all }: { ignoreSyncs: boolean; all: boolean }): Buffer {
    const before = journal.slice(0, cut);
    const end = Math.max(...before.map(({ offset, bytes }) => offset + bytes.length));
    const image = Buffer.alloc(end);
    const lastSync = ignoreSyncs ? -1 : before.findLastIndex(({ kind }) => kind === 'S');
    for (const [n, { kind, offset, bytes }] of before.entries()) {
      if (kind !== 'W' && kind !== 'D') continue;
      if (all || n < lastSync || (kind === 'D' && !ignoreSyncs)) {
        bytes.copy(image, offset);
        continue;
      }
      for (let at = 0; at < bytes.length; at += PAGE_BYTES) {
        const page = bytes.subarray(at, at + PAGE_BYTES);
        const kept = random.below(3);
        if (kept === 0) page.copy(image, offset + at);
        else if (kept === 1) page.subarray(0, page.length >>> 1).copy(image, offset + at);
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
    const damage = await verifyDataFile(dataDir);
    if (damage.length > 0) return damage;
    const acknowledged = journal.slice(0, cut).filter(({ kind }) => kind === 'A');
    // The one change under way at the moment of the cut may be there, or not.
    const next = journal.slice(cut).find(({ kind }) => kind === 'A');
    const changes = acknowledged.map(({ bytes }) => JSON.parse(bytes.toString()) as Acknowledged);
    const pending = next === undefined ? null : (JSON.parse(next.bytes.toString()) as Acknowledged);
    const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
    try {
      return compare(await engine.db('d').collection<Entry>('items').find().toArray(), changes, pending);
    } finally {
      await engine.close();
    }
  }
});

function compare(entries: readonly Entry[], changes: readonly Acknowledged[], pending: Acknowledged | null): string[] {
  const wanted = new Map<string, number>();
  const groups = new Set<number>();
  for (const change of changes) {
    if ('group' in change) groups.add(change.group);
    else if (change.n === null) wanted.delete(change.id);
    else wanted.set(change.id, change.n);
  }
  const problems: string[] = [];
  const found = new Map(entries.filter(({ group }) => group === 0).map(({ _id, n }) => [_id, n]));
  for (const id of new Set([...wanted.keys(), ...found.keys()])) {
    if (wanted.get(id) === found.get(id)) continue;
    const isPending =
      pending !== null && 'id' in pending && pending.id === id && (pending.n ?? undefined) === found.get(id);
    if (!isPending) problems.push(`${id}: ${found.get(id)} instead of ${wanted.get(id)}`);
  }
  const sizes = new Map<number, number>();
  for (const { group } of entries) if (group !== 0) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  for (const [group, size] of sizes) {
    if (size !== GROUP_SIZE) problems.push(`of the group ${group} there are ${size}`);
    const isPending = pending !== null && 'group' in pending && pending.group === group;
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
