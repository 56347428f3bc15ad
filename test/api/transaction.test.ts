import { ObjectId } from 'bson';
import { describe, expect, it } from 'vitest';
import { conflict } from '../world/app.js';
import type { Transaction } from '../world/stored.js';
import { useTestApp } from '../helpers/use.js';

const ACCOUNTS = 'transacted_accounts';
const ENTRIES = 'transacted_entries';

interface Account {
  _id: ObjectId;
  n: number;
  name?: string;
}

const test = await useTestApp();
const { db } = test.app;
await db.createIndexes(ACCOUNTS, [{ name: 'name', key: { name: 1 }, unique: true, sparse: true }]);

async function open(n: number): Promise<ObjectId> {
  const _id = new ObjectId();
  await db.collection<Account>(ACCOUNTS).insertOne({ _id, n });
  return _id;
}

const read = (_id: ObjectId): Promise<Account | null> => db.collection<Account>(ACCOUNTS).findOne({ _id });

/** Moves an amount and keeps an entry of it; 409 where there is not so much. */
function move(tx: Transaction, from: ObjectId, to: ObjectId, amount: number): number {
  const [giver, taker] = [tx.get<Account>(ACCOUNTS, from)!, tx.get<Account>(ACCOUNTS, to)!];
  if (giver.n < amount) throw conflict('TOO_LITTLE', 'There is not so much');
  tx.put(ACCOUNTS, { _id: from, n: giver.n - amount });
  tx.put(ACCOUNTS, { _id: to, n: taker.n + amount });
  tx.put(ENTRIES, { _id: new ObjectId(), from, to, amount });
  return giver.n - amount;
}

describe('Database.transaction', () => {
  it('stores all that it has put and removed, each read finding what was written before it', async () => {
    const [one, two, fresh] = [await open(1), await open(2), new ObjectId()];
    const seen = await db.transaction((tx) => {
      const before = [tx.get(ACCOUNTS, fresh), tx.exists(ACCOUNTS, { _id: one, n: 7 })];
      tx.put(ACCOUNTS, { _id: fresh, n: 3 });
      tx.put(ACCOUNTS, { _id: one, n: 7 });
      tx.remove(ACCOUNTS, two);
      tx.remove(ACCOUNTS, new ObjectId());
      const after = [tx.get(ACCOUNTS, fresh), tx.exists(ACCOUNTS, { _id: one, n: 7 }), tx.get(ACCOUNTS, two)];
      tx.put(ACCOUNTS, { _id: fresh, n: 4 });
      return [...before, ...after];
    });
    expect(seen).toEqual([null, false, { _id: fresh, n: 3 }, true, null]);
    expect(await Promise.all([one, two, fresh].map(read))).toEqual([{ _id: one, n: 7 }, null, { _id: fresh, n: 4 }]);
  });

  it('throws what the run throws, with nothing stored, and refuses nobody else', async () => {
    const [one, two] = [await open(5), await open(0)];
    const refusal = conflict('ANYTHING', 'MDB_MAP_FULL, or whatever its words');
    const refused = db.transaction((tx) => {
      move(tx, one, two, 5);
      throw refusal;
    });
    const others = Array.from({ length: 5 }, () => db.transaction((tx) => move(tx, one, two, 1)));
    await expect(refused).rejects.toBe(refusal);
    expect((await Promise.all(others)).sort()).toEqual([0, 1, 2, 3, 4]);
    await expect(db.transaction((tx) => move(tx, one, two, 1))).rejects.toMatchObject({ code: 'TOO_LITTLE' });
    expect(await db.collection(ENTRIES).countDocuments({ from: one })).toBe(5);
  });

  it('stores nothing when a unique value is taken, also where the run goes on', async () => {
    const one = await open(1);
    await db.transaction((tx) => {
      tx.put(ACCOUNTS, { _id: new ObjectId(), n: 1, name: 'taken' });
    });
    const refused = db.transaction((tx) => {
      tx.put(ACCOUNTS, { _id: one, n: 9 });
      try {
        tx.put(ACCOUNTS, { _id: new ObjectId(), n: 1, name: 'taken' });
      } catch {
        // A transaction that was refused cannot be mended.
      }
    });
    await expect(refused).rejects.toMatchObject({ code: 11_000 });
    expect((await read(one))!.n).toBe(1);
  });

  it('loses nothing of what many do at the same time', async () => {
    const accounts = await Promise.all(Array.from({ length: 4 }, () => open(10)));
    await Promise.all(
      Array.from({ length: 8 }, (_, at) =>
        db.transaction((tx) => move(tx, accounts[at % 4]!, accounts[(at + 1 + (at % 3)) % 4]!, 1)),
      ),
    );
    const sums = await Promise.all(accounts.map(read));
    expect(sums.reduce((sum, account) => sum + account!.n, 0)).toBe(40);
  });

  it('rests on what it has read: of two that each need what the other ends, one is refused', async () => {
    for (let round = 0; round < 5; round++) {
      const [one, two] = [await open(1), await open(1)];
      const leave = (own: ObjectId, other: ObjectId) =>
        db.transaction((tx) => {
          if (tx.get<Account>(ACCOUNTS, other)!.n === 0) throw conflict('LAST_ONE', 'Nobody would be left');
          tx.put(ACCOUNTS, { _id: own, n: 0 });
        });
      const ends = await Promise.allSettled([leave(one, two), leave(two, one)]);
      expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    }
  });

  it('asks for many documents as for a few', async () => {
    await db.collection(ENTRIES).insertMany(Array.from({ length: 600 }, (_, at) => ({ at, kind: 'many' })));
    const found = await db.transaction((tx) => [
      tx.exists(ENTRIES, { at: 599 }),
      tx.exists(ENTRIES, { kind: 'many' }, true),
      tx.exists(ENTRIES, { kind: 'none' }),
    ]);
    expect(found).toEqual([true, true, false]);
  });
});
