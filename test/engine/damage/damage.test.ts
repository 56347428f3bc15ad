import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openEngine } from '../../../src/engine/index.js';
import { DATA_FILE } from '../../../src/engine/storage/file/environment.js';
import { COUNTER_SPACE } from '../../../src/engine/storage/format/key-spaces.js';
import { HEADER_BYTES, META_BYTES, NODE_BYTES } from '../../../src/engine/storage/file/page-layout.js';
import { openRandom } from '../../helpers/random.js';
import { openSeed } from '../../helpers/seed.js';
import { type MappedPage, mapPages, PAGE_BYTES } from '../page-map.js';
import { temporaryDir } from '../transports.js';
import { COLLECTIONS, DOCUMENTS, GROUPS, type Outcome, type Stored } from './damaged-store.js';

/** A second of processor time each; each deep run has others. For a long search: BSVC_TEST_FLIPS=3000. */
const FLIPS = Number(process.env['BSVC_TEST_FLIPS'] ?? 120);
const SEED = openSeed('damaged pages');
const SIDE_BY_SIDE = 2;

const CLASSES = ['header', 'node', 'branch', 'free list', 'first pages', 'content', 'large value'] as const;
type Class = (typeof CLASSES)[number];

interface Flip {
  readonly kind: Class;
  readonly at: number;
  readonly bit: number;
  /** The collection whose the page is; null: of several, or of none. */
  readonly owner: string | null;
}

interface Figures {
  flips: number;
  /** Everything reads and writes as before. */
  same: number;
  /** Refused as a whole when it is opened, or only read. */
  refused: number;
  /** Told by a read or a write. */
  told: number;
  /** Told by a look at every page alone. */
  deepOnly: number;
  silent: number;
  spread: number;
  others: number;
  signal: number;
}

/** Ids that are drawn and moments are the same in each run with a seed, and so is each byte of the store. */
const drawn = vi.hoisted(() => ({ next: (): number => 0 }));
vi.mock(import('node:crypto'), async (original) => {
  const crypto = await original();
  const draw = (): number => drawn.next();
  const randomInt = (max: number): number => draw() % max;
  const randomUUID = () => `${draw().toString(16).padStart(8, '0')}-0000-4000-8000-000000000000` as const;
  return { ...crypto, randomInt: randomInt as typeof crypto.randomInt, randomUUID };
});

const built = join(import.meta.dirname, '..', '..', '..', 'node_modules', `.damage-${process.pid}`);
const program = join(built, 'process.mjs');

describe.each([
  ['under 8 MB', 200, 2_500],
  ['over 8 MB', 900, 9_000],
])('one damaged bit in a store %s', { timeout: 3_600_000 }, (size, ordinary, large) => {
  const source = temporaryDir();
  const copies = temporaryDir();
  const random = openRandom(SEED + large);
  let pages: MappedPage[];
  let owners: Map<number, string>;
  let whole: Outcome;

  beforeAll(async () => {
    mkdirSync(built, { recursive: true });
    const entry = join(import.meta.dirname, 'damage-process.ts');
    buildSync({
      entryPoints: [entry],
      outfile: program,
      bundle: true,
      platform: 'node',
      format: 'esm',
      packages: 'external',
    });
    const ids = openRandom(SEED + ordinary);
    drawn.next = () => ids.below(2 ** 31);
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: SEED * 1_000 });
    const engine = openEngine({ dataDir: source, durability: 'relaxed', countBy: 'isDeleted' });
    for (const name of COLLECTIONS) {
      const items = engine.db('d').collection<Stored>(name);
      await items.createIndexes([
        { key: { group: 1, _id: -1 }, name: 'group' },
        { key: { slot: 1 }, name: 'slot', unique: true },
      ]);
      await engine.changeLogs('d').begin(name, { first: ['group'], omit: [] });
      const text = (n: number) => 'text '.repeat((n % 3 === 0 ? large : ordinary + (n % 50)) / 5);
      const doc = (n: number): Stored => ({
        _id: n,
        group: n % GROUPS,
        slot: `${name} ${n}`,
        views: 0,
        isDeleted: false,
        text: text(n),
      });
      await items.insertMany(Array.from({ length: DOCUMENTS }, (_, n) => doc(n)));
      // Leaves free pages with earlier versions.
      await items.updateMany({ group: 3 }, { $set: { isDeleted: true } });
      await items.deleteMany({ _id: { $gte: DOCUMENTS - 40 } });
    }
    await engine.close();
    vi.useRealTimers();
    const isLarge = statSync(join(source, DATA_FILE)).size > 8 * 1024 * 1024;
    expect(isLarge).toBe(size === 'over 8 MB');
    pages = mapPages(source);
    owners = ownersOf(pages);
    [whole] = (await readCopies([{ kind: 'content', at: 0, bit: -1, owner: null }])) as [Outcome];
    expect(whole).toMatchObject({ deep: [], deepAfter: [] });
    for (const { errors } of Object.values(whole.writes!)) expect(errors).toEqual([]);
  });
  afterAll(() => {
    for (const dir of [source, copies, built]) rmSync(dir, { recursive: true, force: true });
  });

  it('is told by what meets it, and harms nothing else', async () => {
    const flips = Array.from({ length: Math.ceil(FLIPS / 2) }, (_, n) => draw(CLASSES[n % CLASSES.length]!));
    const outcomes = await readCopies(flips);
    const figures = new Map(CLASSES.map((kind) => [kind, noFigures()]));
    const wrong: unknown[] = [];
    for (const [n, flip] of flips.entries()) {
      const found = judge(flip, outcomes[n]!, figures.get(flip.kind)!);
      if (Object.keys(found).length > 0) {
        wrong.push({
          kind: flip.kind,
          page: Math.floor(flip.at / PAGE_BYTES),
          byte: flip.at % PAGE_BYTES,
          bit: flip.bit,
          ...found,
        });
      }
    }
    console.log(`${size}, ${flips.length} flips\n${present(figures)}`);
    expect(wrong).toEqual([]);
    const sum = (what: keyof Figures): number => [...figures.values()].reduce((all, each) => all + each[what], 0);
    expect(sum('flips')).toBe(flips.length);
    // A few flips of another seed may all be of one kind.
    if (flips.length < 100) return;
    expect(sum('same')).toBeGreaterThan(0);
    expect(sum('told') + sum('refused')).toBeGreaterThan(0);
  });

  /** A bit of a page of the class, in use. */
  function draw(kind: Class): Flip {
    const of = (page: MappedPage, byte: number): Flip => {
      return {
        kind,
        at: page.number * PAGE_BYTES + byte,
        bit: random.below(8),
        owner: owners.get(page.number) ?? null,
      };
    };
    const pick = (...kinds: MappedPage['kind'][]): MappedPage =>
      random.pick(pages.filter((page) => kinds.includes(page.kind)));
    switch (kind) {
      case 'header':
        return of(pick('leaf', 'branch', 'free'), random.below(HEADER_BYTES));
      case 'node': {
        const page = pick('leaf');
        const bytes = readFileSync(join(source, DATA_FILE)).subarray(
          page.number * PAGE_BYTES,
          (page.number + 1) * PAGE_BYTES,
        );
        const slot = random.below(bytes.readUInt16LE(20) / 2);
        const place = HEADER_BYTES + slot * 2;
        // The place of a node, or what it says of itself.
        const inNode = HEADER_BYTES + bytes.readUInt16LE(place) + random.below(NODE_BYTES);
        return of(page, random.chance(0.2) ? place + random.below(2) : inNode);
      }
      case 'branch':
        return of(pick('branch'), random.below(PAGE_BYTES));
      case 'free list':
        return of(pick('free'), random.below(PAGE_BYTES));
      case 'first pages':
        return of(pick('meta'), HEADER_BYTES + random.below(META_BYTES - HEADER_BYTES));
      case 'content':
        return of(pick('leaf'), HEADER_BYTES + random.below(PAGE_BYTES - HEADER_BYTES));
      case 'large value':
        return of(pick('large'), random.below(PAGE_BYTES));
    }
  }

  /** What is wrong, by the way in which it is; adds to the figures. */
  function judge(flip: Flip, outcome: Outcome, figures: Figures): Record<string, unknown> {
    const { deep = [], reads = {}, readsAfter = {}, writes = {}, deepAfter, refused } = outcome;
    const wrong: Record<string, unknown> = {};
    figures.flips++;
    if (deepAfter === undefined) {
      figures.signal++;
      wrong['signal'] = { deep, after: Object.keys(outcome) };
      return wrong;
    }
    const differing = Object.entries(reads).filter(([way, read]) => read !== whole.reads![way]);
    const refusals = Object.entries(writes).filter(([, { errors }]) => errors.length > 0);
    // What was written is compared where all of it was.
    const isWritten = refusals.length === 0 && refused === undefined;
    const changed = isWritten
      ? Object.entries(readsAfter).filter(([way, read]) => read !== whole.readsAfter![way])
      : [];
    const silent = [...differing, ...changed].filter(([, read]) => !read.startsWith('error'));
    if (silent.length > 0) {
      figures.silent++;
      wrong['silent'] = { silent: silent.map(([way]) => way), deep };
    }
    const failing = new Set([...differing.map(([way]) => way.slice(0, 1)), ...refusals.map(([name]) => name)]);
    if (flip.owner !== null && refused === undefined && [...failing].some((name) => name !== flip.owner)) {
      figures.others++;
      wrong['others'] = {
        owner: flip.owner,
        failing: [...failing],
        errors: refusals.map(([, { errors }]) => errors[0]),
        differing,
      };
    }
    const isTold = differing.length > 0 || refusals.length > 0;
    // What was whole stays whole; of what was hurt no other collection is afterwards.
    if (deep.length === 0 && deepAfter.length > 0) {
      figures.spread++;
      wrong['spread'] = { deepAfter, errors: refusals };
    } else if (
      flip.owner !== null &&
      deepAfter.some((problem) => COLLECTIONS.some((name) => name !== flip.owner && problem.includes(`d.${name}`)))
    ) {
      figures.spread++;
      wrong['spread'] = { owner: flip.owner, deepAfter };
    }
    if (isTold && deep.length === 0) wrong['unseen by a look at every page'] = { differing, refusals };
    if (refused !== undefined) figures.refused++;
    else if (isTold) figures.told++;
    else if (deep.length > 0) figures.deepOnly++;
    else figures.same++;
    return wrong;
  }

  /** The outcomes of all flips, in their order; some processes side by side. */
  async function readCopies(flips: readonly Flip[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = flips.map(({ at }) => ({ at }));
    let next = 0;
    const work = async (lane: number): Promise<void> => {
      while (next < flips.length) {
        const from = next;
        const end = Math.min(next + 8, flips.length);
        next = end;
        // A process that ends early leaves the rest to another.
        for (let left = from; left < end;) {
          const found = await runProcess(flips.slice(left, end), join(copies, String(lane)));
          for (const [n, outcome] of found.entries()) outcomes[left + n] = outcome;
          left += Math.max(found.length, 1);
        }
      }
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, (_, lane) => work(lane)));
    return outcomes;
  }

  function runProcess(flips: readonly Flip[], folder: string): Promise<Outcome[]> {
    const words = flips.map(({ at, bit }) => `${at}:${bit}`).join(',');
    const child = spawn(process.execPath, [program, source, folder, words], { stdio: ['ignore', 'pipe', 'ignore'] });
    const outcomes: Outcome[] = [];
    let rest = '';
    child.stdout.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        const outcome = JSON.parse(line) as Outcome;
        const isNext = outcomes.at(-1)?.deepAfter !== undefined || outcomes.length === 0;
        outcomes[isNext ? outcomes.length : outcomes.length - 1] = outcome;
      }
    });
    return new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', () => {
        rmSync(folder, { recursive: true, force: true });
        resolve(outcomes);
      });
    });
  }
});

/**
 * Pages whose all entries are of one collection, and those of the pages beside them: what is damaged there may harm
 * that one alone. At the edge a page is read to see that a range has ended, and joined with the one beside it.
 */
function ownersOf(pages: readonly MappedPage[]): Map<number, string> {
  const owners = new Map<number, string>();
  const sorted = pages.filter(
    ({ kind, key }) => (kind === 'leaf' || kind === 'large') && key.length > 5 && key[0]! > COUNTER_SPACE,
  );
  sorted.sort((a, b) => a.key.compare(b.key));
  for (const [n, page] of sorted.entries()) {
    const isSame = (other: MappedPage | undefined): boolean =>
      other !== undefined && other.key.subarray(0, 5).equals(page.key.subarray(0, 5));
    const beyond = sorted.slice(n + 1).filter(({ key }) => key.compare(page.key) > 0);
    const next = beyond[0];
    const nextButOne = beyond.find(({ key }) => key.compare(next!.key) > 0);
    const before = sorted.slice(0, n).findLast(({ key }) => key.compare(page.key) < 0);
    if ([before, next, nextButOne].every(isSame)) owners.set(page.number, nameOf(page.key, sorted));
  }
  return owners;
}

/** Ids are given in the order in which collections, their indexes and their logs were made. */
function nameOf(key: Buffer, pages: readonly MappedPage[]): string {
  const ids = [...new Set(pages.filter((page) => page.key[0] === key[0]).map((page) => page.key.readUInt32BE(1)))].sort(
    (a, b) => a - b,
  );
  const perCollection = ids.length / COLLECTIONS.length;
  return COLLECTIONS[Math.floor(ids.indexOf(key.readUInt32BE(1)) / perCollection)]!;
}

function noFigures(): Figures {
  return { flips: 0, same: 0, refused: 0, told: 0, deepOnly: 0, silent: 0, spread: 0, others: 0, signal: 0 };
}

/** As rows of the table in the engine's README. */
function present(figures: Map<Class, Figures>): string {
  return [...figures].map(([kind, each]) => `| ${[kind, ...Object.values(each)].join(' | ')} |`).join('\n');
}
