/**
 * The victim of the full-disk test: writes documents of all sizes, alone and together, while something else takes the
 * rest of the disk and gives it back, and prints what came of it as one line of JSON. Arguments: a directory on a small
 * disk, a seed.
 */
import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openEngine } from '../index.js';
import { openRandom } from './helpers/random.js';

const STEPS = 1_500;
const MOST_BYTES = 300_000;

const [dir, seed] = process.argv.slice(2);
const ballast = join(dir!, 'ballast');
const random = openRandom(Number(seed));
const engine = openEngine({ dataDir: join(dir!, 'data') });
const items = engine.db('full').collection<{ _id: number; slot: number; tags: string[]; body: string }>('items');
await items.createIndex({ slot: 1 }, { unique: true });
await items.createIndex({ tags: 1, slot: -1 });

const stored = new Map<number, number>();
const told = { done: 0, refused: 0, removed: 0, other: [] as string[] };
let next = 0;

/** What is stored afterwards is noted only when it was acknowledged. */
async function attempt(write: () => Promise<unknown>, note: () => void): Promise<boolean> {
  try {
    await write();
    note();
    told.done++;
    return true;
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (code === 'NO_SPACE') told.refused++;
    else told.other.push(String(error));
    return false;
  }
}

/** Small ones mostly, some of several pages, a few of many. */
function bodyLength(): number {
  const most = [400, 2_500, 6_000, MOST_BYTES][[0, 0, 0, 0, 1, 1, 2, 3][random.below(8)]!]!;
  return random.below(most);
}

function newItem(): { _id: number; slot: number; tags: string[]; body: string } {
  const _id = next++;
  const tags = Array.from({ length: random.below(4) }, () => `tag ${random.below(1000)}`);
  return { _id, slot: _id * 7, tags, body: 'x'.repeat(bodyLength()) };
}

function anyStored(): number | undefined {
  const ids = [...stored.keys()];
  return ids[random.below(ids.length || 1)];
}

const steps: (() => Promise<unknown>)[] = [
  async () => {
    const item = newItem();
    await attempt(
      () => items.insertOne(item),
      () => stored.set(item._id, item.body.length),
    );
  },
  async () => {
    const batch = Array.from({ length: 1 + random.below(60) }, newItem);
    await attempt(
      () => engine.insertTogether({ db: 'full', collection: 'items' }, batch),
      () => {
        for (const { _id, body } of batch) stored.set(_id, body.length);
      },
    );
  },
  async () => {
    const _id = anyStored();
    if (_id === undefined) return;
    const body = 'y'.repeat(bodyLength());
    await attempt(
      () => items.updateOne({ _id }, { $set: { body } }),
      () => stored.set(_id, body.length),
    );
  },
  async () => {
    const ids = Array.from({ length: 1 + random.below(20) }, anyStored).filter((id) => id !== undefined);
    for (const _id of ids) {
      const gone = await attempt(
        () => engine.useReserve(() => items.deleteOne({ _id })),
        () => stored.delete(_id),
      );
      if (gone) told.removed++;
    }
  },
  // Several at once share a transaction.
  async () => {
    await Promise.all(Array.from({ length: 8 }, () => steps[random.below(3)]!()));
  },
  async () => {
    if (random.below(3) === 0) rmSync(ballast, { force: true });
    else if (random.below(2) === 0) {
      try {
        writeFileSync(ballast, randomBytes(8 * 1024 * 1024));
      } catch {
        // It has taken what there was.
      }
    }
  },
];

for (let n = 0; n < STEPS; n++) await steps[random.below(steps.length)]!();

const found = await items.find().toArray();
const lost = [...stored].filter(([_id, length]) => found.find((item) => item._id === _id)?.body.length !== length);
const problems = await engine.verify();
await engine.close();
process.stdout.write(JSON.stringify({ ...told, stored: stored.size, found: found.length, lost, problems }));
