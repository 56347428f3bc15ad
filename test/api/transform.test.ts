import { ObjectId, type Document } from 'bson';
import { describe, expect, it } from 'vitest';
import { conflict, forbidden } from '../world/app.js';
import type { WriteTurn } from '../world/stored.js';
import { useTestApp } from '../helpers/use.js';

const NOTES = 'transformed_notes';
const OTHERS = 'transformed_others';

const test = await useTestApp();
const { db } = test.app;

async function store(fields: Document, name = NOTES): Promise<ObjectId> {
  const _id = new ObjectId();
  await db.collection<Document & { _id: ObjectId }>(name).insertOne({ _id, updatedAt: new Date(1), ...fields });
  return _id;
}

const read = (_id: ObjectId, name = NOTES): Promise<Document | null> =>
  db.collection<Document & { _id: ObjectId }>(name).findOne({ _id });

/** The change as one step of a document's versions. */
const change =
  (of: (stored: Document) => Document): WriteTurn['run'] =>
  (stored) =>
    stored && { ...stored, ...of(stored), updatedAt: new Date(((stored.updatedAt as Date).getTime() ?? 0) + 1) };

const add = change(({ n }) => ({ n: (n as number) + 1 }));

describe('Database.transform', () => {
  it('loses none of 40 changes at the same time, each of a later version', async () => {
    const id = await store({ n: 0, list: [] });
    const versions = new Set<number>();
    const push = (at: number): WriteTurn['run'] =>
      change(({ n, list }) => ({ n: (n as number) + 1, list: [...(list as number[]), at] }));
    await Promise.all(
      Array.from({ length: 40 }, async (_, at) => {
        const { after } = await db.transform(NOTES, id, push(at));
        versions.add((after!.updatedAt as Date).getTime());
      }),
    );
    const stored = (await read(id))!;
    expect(stored.n).toBe(40);
    expect((stored.list as number[]).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, at) => at));
    expect(versions.size).toBe(40);
  });

  it('answers the document before and after, keeps it, removes it, makes it', async () => {
    const id = await store({ n: 1, text: 'kept' });
    expect(await db.transform(NOTES, id, add)).toMatchObject({ before: { n: 1 }, after: { n: 2, text: 'kept' } });
    const kept = await db.transform(NOTES, id, (stored) => stored);
    expect(kept.after).toEqual(kept.before);
    expect(await db.transform(NOTES, id, () => null)).toMatchObject({ before: { n: 2 }, after: null });
    expect(await read(id)).toBeNull();
    const made = { _id: id, n: 7, updatedAt: new Date(5) };
    expect(await db.transform(NOTES, id, () => made)).toEqual({ before: null, after: made });
    expect(await read(id)).toEqual(made);
  });

  it('removes fields that are left out, and stores others as they are given', async () => {
    const id = await store({ gone: 1, stays: { deep: [1, { two: 2 }] } });
    await db.transform(NOTES, id, (stored) => {
      const { gone: _, ...rest } = stored!;
      return { ...rest, fresh: new Date(3), updatedAt: new Date(2) };
    });
    expect(await read(id)).toEqual({
      _id: id,
      stays: { deep: [1, { two: 2 }] },
      fresh: new Date(3),
      updatedAt: new Date(2),
    });
  });

  it('throws what the decision throws, whatever its words, and refuses nobody else', async () => {
    const [id, other] = [await store({ n: 0 }), await store({ n: 0 })];
    const refusal = forbidden('QUOTA_EXCEEDED', 'no space left: the quota of MDB_MAP_FULL is used up');
    const refused = db.transform(NOTES, id, () => {
      throw refusal;
    });
    const changes = Array.from({ length: 10 }, (_, at) => db.transform(NOTES, at % 2 ? id : other, add));
    await expect(refused).rejects.toBe(refusal);
    await Promise.all(changes);
    expect([(await read(id))!.n, (await read(other))!.n]).toEqual([5, 5]);
  });

  it('asks what is stored in other collections, a few documents and many', async () => {
    const id = await store({ n: 0 });
    await db
      .collection(OTHERS)
      .insertMany(Array.from({ length: 600 }, (_, at) => ({ at, kind: 'many', updatedAt: new Date(1) })));
    const answers = await db.transform(NOTES, id, (stored, exists) => ({
      ...stored!,
      found: [
        exists(OTHERS, { at: 3 }),
        exists(OTHERS, { at: 599 }),
        exists(OTHERS, { at: 600 }),
        exists(OTHERS, { kind: 'many' }, true),
        exists(OTHERS, { kind: 'none' }, true),
        exists('transformed_nowhere', {}),
      ],
      updatedAt: new Date(9),
    }));
    expect(answers.after!.found).toEqual([true, true, false, true, false, false]);
  });

  it('reads fields of other documents, in one transaction after those before it too', async () => {
    const [id, other] = [await store({ n: 0 }), await store({ n: 7, text: 'seven', more: [1] }, OTHERS)];
    const nowhere = new ObjectId();
    const look: WriteTurn['run'] = (stored, exists, readFields) => ({
      ...stored!,
      found: [
        readFields(OTHERS, other, new Set(['text', 'none']))?.text,
        readFields(OTHERS, other, new Set(['n']))?.n,
        readFields(OTHERS, nowhere, new Set(['n'])),
        exists(OTHERS, { _id: other, text: 'seven' }),
      ],
      updatedAt: new Date(((stored!.updatedAt as Date).getTime() ?? 0) + 1),
    });
    expect((await db.transform(NOTES, id, look)).after!.found).toEqual(['seven', 7, null, true]);
    const [, written] = await db.transformTogether([
      { collection: OTHERS, id: other, run: change(() => ({ n: 8 })) },
      { collection: NOTES, id, run: look },
    ]);
    expect(written!.after!.found).toEqual(['seven', 8, null, true]);
  });

  it('is refused by a unique value, and stores nothing', async () => {
    const name = 'transformed_unique';
    await db.createIndexes(name, [{ key: { slot: 1 }, unique: true, name: 'unique_slot' }]);
    const [id] = [await store({ slot: 1 }, name), await store({ slot: 2 }, name)];
    const taken = db.transform(
      name,
      id,
      change(() => ({ slot: 2, more: true })),
    );
    await expect(taken).rejects.toMatchObject({ code: 11_000 });
    expect(await read(id, name)).toMatchObject({ slot: 1 });
    const ids = await Promise.all(Array.from({ length: 8 }, (_, at) => store({ slot: 10 + at }, name)));
    const rivals = ids.map((each) =>
      db.transform(
        name,
        each,
        change(() => ({ slot: 99 })),
      ),
    );
    const outcomes = await Promise.allSettled(rivals);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });
});

describe('Database.transformTogether', () => {
  const turn = (id: ObjectId, run: WriteTurn['run']): WriteTurn => ({ collection: NOTES, id, run });

  it('carries changes out in their order, each seeing those before it', async () => {
    const [id, other] = [await store({ n: 1 }), new ObjectId()];
    const [, , made, last] = await db.transformTogether([
      turn(id, add),
      turn(id, add),
      turn(other, (_, exists) => ({ _id: other, seen: exists(NOTES, { _id: id, n: 3 }), updatedAt: new Date(1) })),
      turn(id, () => null),
    ]);
    expect([made!.after!.seen, last!.before!.n, last!.after]).toEqual([true, 3, null]);
    expect([await read(id), (await read(other))!.seen]).toEqual([null, true]);
  });

  it('stores nothing where one is refused, and refuses nobody else', async () => {
    const [id, other] = [await store({ n: 0 }), await store({ n: 0 })];
    const refusal = conflict('REFUSED', 'not this one');
    const refused = db.transformTogether([
      turn(id, add),
      turn(other, () => {
        throw refusal;
      }),
    ]);
    const beside = db.transform(NOTES, other, add);
    await expect(refused).rejects.toBe(refusal);
    await beside;
    expect([(await read(id))!.n, (await read(other))!.n]).toEqual([0, 1]);
  });

  it('never shows half of it: what goes from one document to another is there once', async () => {
    const ids = [await store({ n: 20 }), await store({ n: 0 })] as const;
    const sum = async (): Promise<number> => {
      const found = await db
        .collection<Document & { _id: ObjectId }>(NOTES)
        .find({ _id: { $in: [...ids] } })
        .toArray();
      return found.reduce((total, { n }) => total + (n as number), 0);
    };
    const move = (): Promise<unknown> =>
      db.transformTogether([
        turn(
          ids[0],
          change(({ n }) => ({ n: (n as number) - 1 })),
        ),
        turn(ids[1], add),
      ]);
    const sums: number[] = [];
    for (let round = 0; round < 5; round++) {
      const moves = Array.from({ length: 4 }, move);
      sums.push(await sum());
      await Promise.all(moves);
    }
    expect(new Set(sums)).toEqual(new Set([20]));
    expect((await read(ids[1]))!.n).toBe(20);
  });
});
