import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ObjectId } from 'bson';
import { expect, it } from 'vitest';
import { type App, AppError } from '../../world/app.js';
import { type Collection, parseFieldSpec, referencesOf } from '../../world/collections.js';
import {
  deleteDocument,
  insertDocument,
  insertDocuments,
  recoverDocument,
  trashDocument,
  updateDocument,
  visibleDocuments,
} from '../../world/documents.js';
import { drainJobs, openJobQueue } from '../../world/jobs.js';
import { buildCollection, buildProject, storedDocuments } from '../../helpers/build-project.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openRandom, type Random } from '../../helpers/random.js';
import { openSeed } from '../../helpers/seed.js';
import { useTestApp } from '../../helpers/use.js';

const AT_ONCE = 6;
const STEPS = Number(process.env.BSVC_TEST_RUNS ?? (process.env.BSVC_TEST_TRANSPORT === 'wire' ? 120 : 360));
/** After so many the jobs are run to their end and everything is looked at. */
const LOOK = 120;
/** By then a job that was stored before a write is due. */
const LATER_MS = 31_000;

const WRITES = new Set(['insertOne', 'insertMany', 'updateOne', 'updateMany', 'deleteOne', 'deleteMany']);
const isWrite = (key: string | symbol): boolean =>
  typeof key === 'string' && (WRITES.has(key) || key.startsWith('findOneAnd'));

class Died extends Error {}

/** Turns of the event loop for which a write waits for others at most. */
const PATIENCE = 100;
let written = 0;

/** The app of a process whose writes others overtake, and that dies before one of its next `writes`. */
function disturbed(app: App, random: Random, writes: number): App {
  let left = writes;
  const live = async (): Promise<void> => {
    const after = written + Math.max(0, random.below(6) - 2);
    for (let turns = 0; turns < PATIENCE && written < after; turns++) await nextTurn();
    if (left-- <= 0) throw new Died('the process is gone');
    written++;
  };
  const { db } = app;
  const dying: App['db'] = {
    ...db,
    collection: (name, options) =>
      new Proxy(db.collection(name, options), {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (typeof value !== 'function') return value;
          const call = (given: unknown[]): unknown => (value as (...args: unknown[]) => unknown).apply(target, given);
          return (...given: unknown[]): unknown => (isWrite(key) ? live().then(() => call(given)) : call(given));
        },
      }),
    transform: async (...given) => {
      await live();
      return db.transform(...given);
    },
    transformTogether: async (turns) => {
      await live();
      return db.transformTogether(turns);
    },
  };
  return { ...app, db: dying, jobs: openJobQueue(dying, app.clock, null) };
}

it('lets no visible document refer to one that is gone, after any history and the end of the jobs', async () => {
  const seed = openSeed('references');
  const random = openRandom(seed);
  const clock = createFakeClock();
  const test = await useTestApp({ clock });
  const { project } = await buildProject(test.app);
  const build = (...specs: string[]): Promise<Collection> =>
    buildCollection(test.app, project, { fields: specs.map(parseFieldSpec) });
  const boards = await build('n:Number');
  const people = await build(`home:Ref(${boards.name}){onDelete:unset}`);
  const lists = await build(`board:Ref(${boards.name})!{onDelete:trash}`);
  const cards = await build(`list:Ref(${lists.name}){onDelete:trash}`, `by:Ref(${people.name}){onDelete:restrict}`);
  const notes = await build(`card:Ref(${cards.name})!{onDelete:remove}`);
  const tags = await build(`cards:Array(Ref(${cards.name}){onDelete:unset})`);
  const all = [boards, people, lists, cards, notes, tags];
  const known = new Map(all.map(({ name }) => [name, [] as string[]]));
  const reached: Record<string, number> = { died: 0, REFERENCE_MISSING: 0, stored: 0 };

  const idIn = (name: string, from: Random): string => {
    const ids = known.get(name) ?? [];
    return ids.length === 0 || from.chance(0.05) ? '0'.repeat(24) : from.pick(ids.slice(-6));
  };
  const valuesFor = (collection: Collection, from: Random): Record<string, unknown> =>
    Object.fromEntries(
      referencesOf(collection).map(({ field, isList, to }) => [
        field,
        isList ? [idIn(to, from), idIn(to, from)] : idIn(to, from),
      ]),
    );
  const step = async (from: Random): Promise<void> => {
    const collection = from.pick(all);
    const place = { collection, writer: null };
    const app = disturbed(test.app, from, from.chance(0.25) ? from.below(5) : Infinity);
    const id = idIn(collection.name, from);
    try {
      const kind = from.below(10);
      if (kind < 3) {
        const stored = await insertDocument(app, place, valuesFor(collection, from));
        known.get(collection.name)!.push(String(stored._id));
        reached.stored!++;
      } else if (kind < 4) {
        const { ids } = await insertDocuments(app, place, [valuesFor(collection, from), valuesFor(collection, from)]);
        known.get(collection.name)!.push(...ids);
        reached['stored together']!++;
      } else if (kind < 6) {
        const change = valuesFor(collection, from);
        if (Object.keys(change).length > 0) await updateDocument(app, place, id, change);
      } else if (kind < 8) await trashDocument(app, place, id);
      else if (kind < 9) await deleteDocument(app, place, id);
      else await recoverDocument(app, place, id);
    } catch (error) {
      if (error instanceof Died) reached.died!++;
      else if (!(error instanceof AppError)) throw error;
      else reached[error.code] = (reached[error.code] ?? 0) + 1;
    }
  };
  // Chance alone may not meet them.
  const two = await insertDocuments(test.app, { collection: boards, writer: null }, [{ n: 1 }, { n: 2 }]);
  reached['stored together'] = two.insertedCount;
  const ann = await insertDocument(test.app, { collection: people, writer: null }, {});
  await insertDocument(test.app, { collection: cards, writer: null }, { by: String(ann._id) });
  const held = trashDocument(test.app, { collection: people, writer: null }, String(ann._id));
  await expect(held).rejects.toMatchObject({ code: 'DOCUMENT_REFERRED_TO' });
  for (let round = 0; round * AT_ONCE < STEPS; round++) {
    const steps = Array.from({ length: AT_ONCE }, (_, n) => step(random.fork(`${round} ${n}`)));
    if (AT_ONCE > 1 && random.chance(0.2)) {
      steps.push(drainJobs(disturbed(test.app, random.fork(`jobs ${round}`), Infinity)).then(() => undefined));
    }
    await Promise.all(steps);
    if (random.chance(0.1)) clock.advance(LATER_MS);
    if (((round + 1) * AT_ONCE) % LOOK !== 0) continue;
    for (let ran = 1; ran > 0;) {
      clock.advance(LATER_MS);
      ran = await drainJobs(test.app);
    }
    expect(await listDangling(test.app, all), `seed ${seed}, round ${round}`).toEqual([]);
  }
  expect(Math.min(...Object.values(reached)), JSON.stringify(reached)).toBeGreaterThan(0);
});

/** Visible documents that refer to one that is not, by fields that say what becomes of them. */
async function listDangling(app: App, all: readonly Collection[]): Promise<string[]> {
  const dangling: string[] = [];
  for (const collection of all) {
    for (const { field, to, onDelete } of referencesOf(collection)) {
      if (onDelete === undefined) continue;
      const target = all.find(({ name }) => name === to)!;
      const there = await listVisible(app, target);
      const ids = new Set(there.map(({ _id }: { _id: ObjectId }) => _id.toHexString()));
      for (const document of await listVisible(app, collection)) {
        const held = [document[field]].flat().filter((id) => id !== undefined && id !== null);
        if (held.some((id) => !ids.has(id as string))) dangling.push(`${collection.name}.${field} (${onDelete})`);
      }
    }
  }
  return dangling;
}

async function listVisible(app: App, collection: Collection): Promise<(Record<string, unknown> & { _id: ObjectId })[]> {
  return storedDocuments(app, collection).find(visibleDocuments()).toArray();
}
