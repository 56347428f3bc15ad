import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadConfig } from '../../../src/config/config.js';
import { findAndModify } from '../../../src/engine/commands/write/find-and-modify.js';
import { find } from '../../../src/engine/commands/read/find.js';
import { insert } from '../../../src/engine/commands/write/insert.js';
import { update } from '../../../src/engine/commands/write/update.js';
import { deleteCommand } from '../../../src/engine/commands/write/delete.js';
import { EngineError } from '../../../src/engine/errors.js';
import { openEngine, type Engine } from '../../../src/engine/index.js';
import { openDatabase, type Database, type Store } from '../../../src/platform/database/database.js';
import { findOutage } from '../../../src/platform/database/outages.js';
import { openTempDir, type TempDir } from '../../helpers/temp-dir.js';

interface Thing {
  _id: number;
  n?: number;
}

let dir: TempDir;
let engine: Engine;
let db: Database;
let things: Store<Thing>;
beforeEach(async () => {
  dir = await openTempDir();
  engine = openEngine({ dataDir: dir.path, durability: 'relaxed' });
  const { uri } = await engine.listen('127.0.0.1:0');
  db = await openDatabase(loadConfig([{ source: 'test', values: { MONGODB_URI: uri } }]).config);
  things = db.collection<Thing>('things');
});
afterEach(async () => {
  vi.restoreAllMocks();
  await db.close();
  await engine.close();
  await dir.remove();
});

const WRITES: [string, () => Promise<unknown>][] = [
  ['insertOne', () => things.insertOne({ _id: 1 })],
  ['insertMany', () => things.insertMany([{ _id: 1 }, { _id: 2 }])],
  ['updateOne', () => things.updateOne({ _id: 1 }, { $set: { n: 1 } })],
  ['updateMany', () => things.updateMany({}, { $set: { n: 1 } })],
  ['deleteOne', () => things.deleteOne({ _id: 1 })],
  ['deleteMany', () => things.deleteMany({})],
  ['findOneAndUpdate', () => things.findOneAndUpdate({ _id: 1 }, { $set: { n: 1 } })],
  ['findOneAndDelete', () => things.findOneAndDelete({ _id: 1 })],
  ['bulkWrite', () => things.bulkWrite([{ updateOne: { filter: { _id: 1 }, update: { $set: { n: 1 } } } }])],
];
const COMMANDS = [insert, update, deleteCommand, findAndModify, find];

const outageOf = (work: Promise<unknown>): Promise<string | null> =>
  work.then(
    () => 'none',
    (error: unknown) => {
      const outage = findOutage(error);
      return outage && `${outage.code}, retry after ${outage.retryAfterSeconds} s`;
    },
  );
const UNAVAILABLE = 'DATABASE_UNAVAILABLE, retry after 5 s';

describe('a write that no majority confirms in time', () => {
  it.each(WRITES)('is an outage, not a success and not our fault: %s', async (_name, write) => {
    const writeConcernError = {
      code: 64,
      codeName: 'WriteConcernTimeout',
      errmsg: 'waiting for replication timed out',
    };
    for (const command of COMMANDS.slice(0, 4)) {
      const run = command.run.bind(command);
      vi.spyOn(command, 'run').mockImplementation(async (call, body) => ({
        ...(await run(call, body)),
        writeConcernError,
      }));
    }
    expect(await outageOf(write())).toBe(UNAVAILABLE);
  });
});

describe.each([
  [6, 'HostUnreachable'],
  [7, 'HostNotFound'],
  [89, 'NetworkTimeout'],
  [134, 'ReadConcernMajorityNotAvailableYet'],
  [262, 'ExceededTimeLimit'],
  [9_001, 'SocketException'],
  [10_107, 'NotWritablePrimary'],
  [189, 'PrimarySteppedDown'],
  [91, 'ShutdownInProgress'],
  [11_600, 'InterruptedAtShutdown'],
  [11_602, 'InterruptedDueToReplStateChange'],
  [13_435, 'NotPrimaryNoSecondaryOk'],
  [13_436, 'NotPrimaryOrSecondary'],
])('a server that answers %i (%s)', (code, name) => {
  it('is an outage', async () => {
    for (const command of COMMANDS) {
      vi.spyOn(command, 'run').mockImplementation(() => {
        throw new EngineError(code, name);
      });
    }
    expect(await outageOf(things.insertOne({ _id: 1 }))).toBe(UNAVAILABLE);
    expect(await outageOf(things.findOne({ _id: 1 }))).toBe(UNAVAILABLE);
  });
});

describe('an error of any other kind', () => {
  it('is none', async () => {
    await things.insertOne({ _id: 1 });
    expect(await outageOf(things.insertOne({ _id: 1 }))).toBeNull();
    expect(findOutage(new Error('ours'))).toBeNull();
  });
});
