import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AppError } from '../world/app.js';
import {
  type Collection,
  type CollectionEdit,
  type Field,
  type NewCollection,
  type Rls,
  addCollection,
  documentIndexes,
  documentsName,
  editCollection,
  listMissingIndexes,
  setRls,
} from '../world/collections.js';
import { insertDocument } from '../world/documents.js';
import { collectionStore } from '../world/stored.js';
import { buildProject } from '../helpers/build-project.js';
import { runs } from '../helpers/runs.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);

const name = fc.constantFrom('a', 'b', 'c', 'userId', 'ownerId', 'x-y', 'toString');
const field: fc.Arbitrary<Field> = fc.record(
  { name, type: fc.constantFrom('String', 'Array', 'Object', 'Number'), unique: fc.boolean() },
  { requiredKeys: ['name', 'type'] },
);
const part = fc
  .tuple(fc.constantFrom('', '-'), fc.oneof(name, fc.constantFrom('_id', 'createdAt', 'updatedAt', 'a.b', 'b.c')))
  .map((both) => both.join(''));
const indexes = fc.array(
  fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(',')),
  { maxLength: 12 },
);
const rls: fc.Arbitrary<Rls | null> = fc.option(
  fc.record({ mode: fc.constantFrom('private', 'public-read'), ownerField: fc.constantFrom('userId', 'ownerId', 'a') }),
);
const mode = fc.constantFrom('enforced', 'flexible');
const value = fc.constantFrom<unknown>('x', 1, ['x'], ['x', 'y'], { b: [1], c: [2] }, [{ b: 1 }], null);
const edit: fc.Arbitrary<CollectionEdit> = fc.record(
  { addFields: fc.array(field, { maxLength: 2 }), dropFields: fc.array(name, { maxLength: 1 }), mode, indexes },
  { requiredKeys: [] },
);
const step = fc.oneof(
  fc.record({ edit }),
  fc.record({ rls }),
  fc.record({ document: fc.dictionary(name, value, { maxKeys: 5 }) }),
);
const first: fc.Arbitrary<Omit<NewCollection, 'name'>> = fc.record({
  mode,
  fields: fc.array(field, { maxLength: 4 }),
  rls,
  indexes,
});

describe('any sequence of schema changes and inserts, one after the other or at once', () => {
  let made = 0;
  const add = (input: Omit<NewCollection, 'name'>) =>
    addCollection(test.app, owner.project, { name: `any${++made}`, ...input }).then(({ collection }) => collection);
  const read = async ({ _id }: Collection) => (await collectionStore(test.app).findOne({ _id })) as Collection;

  async function take({ name: collection, _id, projectId }: Collection, taken: object): Promise<void> {
    if ('edit' in taken) await editCollection(test.app, projectId, collection, taken.edit as CollectionEdit);
    else if ('rls' in taken) await setRls(test.app, projectId, collection, taken.rls as Rls | null);
    else if ('document' in taken) {
      const place = { collection: await read({ _id } as Collection), writer: null };
      await insertDocument(test.app, place, JSON.parse(JSON.stringify(taken.document)));
    }
  }

  /** What is refused is refused in words for the client; anything else is our bug. */
  const orRefused = (error: unknown): void => {
    if (!(error instanceof AppError)) throw error;
  };

  it('fails with nothing but a refusal, and leaves exactly the indexes that are asked for', async () => {
    await fc.assert(
      fc.asyncProperty(first, fc.array(step, { maxLength: 6 }), fc.boolean(), async (declared, steps, atOnce) => {
        const collection = (await add(declared).catch(orRefused)) ?? (await add({ mode: 'flexible' }));
        if (atOnce) await Promise.all(steps.map((taken) => take(collection, taken).catch(orRefused)));
        else for (const taken of steps) await take(collection, taken).catch(orRefused);
        const latest = await read(collection);
        expect(await listMissingIndexes(test.app, latest)).toEqual([]);
        const stored = await test.app.db.collection(documentsName(latest)).indexes();
        expect(stored).toHaveLength(documentIndexes(latest).length + 1);
        await test.app.db.collection(documentsName(latest)).drop();
      }),
      { seed: 20_261_121, numRuns: runs(150) },
    );
  });
});
