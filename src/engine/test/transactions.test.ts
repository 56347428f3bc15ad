import { rmSync } from 'node:fs';
import { type ClientSession, type Collection, MongoClient } from 'mongodb';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Engine, openEngine } from '../index.js';
import { temporaryDir } from './transports.js';

interface Account {
  _id: string;
  n: number;
  at?: Date;
}

let dataDir: string;
let engine: Engine;
let client: MongoClient;
let accounts: Collection<Account>;
let sessions: ClientSession[];

beforeEach(async () => {
  dataDir = temporaryDir();
  engine = openEngine({ dataDir, durability: 'relaxed' });
  client = await MongoClient.connect((await engine.listen('127.0.0.1:0')).uri);
  accounts = client.db('bank').collection<Account>('accounts');
  await accounts.createIndex({ n: 1 });
  await accounts.insertMany([
    { _id: 'ann', n: 10 },
    { _id: 'bob', n: 20 },
  ]);
  sessions = [];
});

afterEach(async () => {
  for (const session of sessions) await session.endSession();
  await client.close();
  await engine.close();
  rmSync(dataDir, { recursive: true, force: true });
});

function begin(): ClientSession {
  const session = client.startSession();
  sessions.push(session);
  session.startTransaction();
  return session;
}

const stored = async (): Promise<Record<string, number>> =>
  Object.fromEntries((await accounts.find().sort({ _id: 1 }).toArray()).map(({ _id, n }) => [_id, n]));

it('a transaction sees its own writes, others see all of them or none', async () => {
  const session = begin();
  await accounts.insertOne({ _id: 'eve', n: 1 }, { session });
  await accounts.updateMany({}, { $inc: { n: 1 } }, { session });
  await accounts.deleteOne({ _id: 'bob' }, { session });
  const left = await accounts.findOneAndUpdate({ n: 2 }, { $mul: { n: 5 } }, { session, returnDocument: 'after' });
  expect(left).toEqual({ _id: 'eve', n: 10 });
  expect(await accounts.find({}, { session, sort: { n: -1 }, projection: { n: 1, _id: 0 } }).toArray()).toEqual([
    { n: 11 },
    { n: 10 },
  ]);
  expect(await stored()).toEqual({ ann: 10, bob: 20 });
  await session.commitTransaction();
  expect(await stored()).toEqual({ ann: 11, eve: 10 });
  // Repeated after an answer that was lost.
  await session.commitTransaction();
});

it('an aborted transaction, and one with a refused write, leave nothing', async () => {
  const session = begin();
  await accounts.insertOne({ _id: 'eve', n: 1 }, { session });
  await session.abortTransaction();
  session.startTransaction();
  await accounts.updateOne({ _id: 'ann' }, { $set: { n: 0 } }, { session });
  await expect(accounts.insertOne({ _id: 'bob', n: 1 }, { session })).rejects.toMatchObject({
    code: 11_000,
    keyValue: { _id: 'bob' },
  });
  await expect(session.commitTransaction()).rejects.toMatchObject({ code: 251 });
  expect(await stored()).toEqual({ ann: 10, bob: 20 });
});

it('what it has written is there for each of its commands, whether others commit between them or not', async () => {
  const made = client.db('bank').collection<Account>('made');
  for (const [at, others] of [0, 3].entries()) {
    const session = begin();
    for (let n = 0; n < 6; n++) {
      const _id = `${at}-${n}`;
      await made.insertOne({ _id, n }, { session });
      await made.updateOne({ _id }, { $inc: { n: 10 } }, { session });
      if (n >= 3) await made.deleteOne({ _id: `${at}-${n - 3}` }, { session });
      if (n < others) await accounts.updateOne({ _id: 'bob' }, { $inc: { n: 1 } });
    }
    expect(await made.find({ n: { $gte: 10 } }, { session }).toArray()).toHaveLength(3 * (at + 1));
    await session.commitTransaction();
    expect(await made.countDocuments()).toBe(3 * (at + 1));
    expect(await made.estimatedDocumentCount()).toBe(3 * (at + 1));
  }
  expect(await stored()).toEqual({ ann: 10, bob: 23 });
  expect(await client.db('bank').command({ validate: 'made' })).toMatchObject({ valid: true });
});

it.each([
  ['a document that was read', (session: ClientSession) => accounts.findOne({ _id: 'ann' }, { session })],
  ['a document that was not there', (session: ClientSession) => accounts.findOne({ n: 11 }, { session })],
  ['a document that was replaced', (session: ClientSession) => accounts.findOneAndDelete({ n: 10 }, { session })],
])('%s and that another has changed is a conflict', async (_, touch) => {
  const session = begin();
  await touch(session);
  await accounts.updateOne({ _id: 'bob' }, { $set: { n: 0 } }, { session });
  await accounts.updateOne({ _id: 'ann' }, { $inc: { n: 1 } });
  const error = await accounts.findOne({ _id: 'bob' }, { session }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 112, codeName: 'WriteConflict' });
  expect((error as { hasErrorLabel(label: string): boolean }).hasErrorLabel('TransientTransactionError')).toBe(true);
  expect(await stored()).toEqual({ ann: 11, bob: 20 });
});

it('what happens between the last write and the commit is seen too', async () => {
  const session = begin();
  await accounts.findOneAndUpdate({ _id: 'ann' }, { $inc: { n: 1 } }, { session });
  await accounts.deleteOne({ _id: 'ann' });
  await expect(session.commitTransaction()).rejects.toMatchObject({ code: 112 });
  expect(await stored()).toEqual({ bob: 20 });
});

it('moves of money at the same time lose none of it', async () => {
  const move = (from: string, to: string): Promise<void> =>
    client.withSession((session) =>
      session.withTransaction(async () => {
        const source = await accounts.findOne({ _id: from }, { session });
        await accounts.updateOne({ _id: from }, { $set: { n: source!.n - 1 } }, { session });
        await accounts.updateOne({ _id: to }, { $inc: { n: 1 } }, { session });
      }),
    );
  await Promise.all(Array.from({ length: 8 }, (_, n) => move(n < 5 ? 'ann' : 'bob', n < 5 ? 'bob' : 'ann')));
  expect(await stored()).toEqual({ ann: 8, bob: 22 });
});

it('an upsert keeps the id, and the time, that it has told', async () => {
  const session = begin();
  const told = await accounts.findOneAndUpdate(
    { n: 77 },
    { $currentDate: { at: true } },
    { session, upsert: true, returnDocument: 'after' },
  );
  const other = await accounts.updateOne({ n: 78 }, { $set: { n: 78 } }, { session, upsert: true });
  await session.commitTransaction();
  expect(await accounts.findOne({ n: 77 })).toEqual(told);
  expect(await accounts.findOne({ n: 78 })).toMatchObject({ _id: other.upsertedId });
});

it('other commands are refused by name, and so is a transaction without a session', async () => {
  const session = begin();
  await expect(accounts.countDocuments({}, { session })).rejects.toMatchObject({
    code: 263,
    message: /aggregate cannot be part of a transaction in this engine: delete, find/,
  });
  const bare = client.db('bank').command({ commitTransaction: 1, txnNumber: 1 });
  await expect(bare).rejects.toMatchObject({ code: 251 });
});
