import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { refused, same, uri, works } from './steps.mjs';

const run = promisify(execFile);
const bin = join(import.meta.dirname, 'node_modules', '.bin', 'mongosh');

/** What an expression is in the shell, as JSON. */
async function shell(...expressions) {
  try {
    const options = ['--quiet', '--norc', '--json=relaxed', '--eval', expressions.join('; ')];
    const { stdout } = await run(bin, [`${uri}/shell`, ...options]);
    return stdout.trim() === '' ? undefined : JSON.parse(stdout);
  } catch (error) {
    throw new Error(error.stderr || error.stdout || error.message);
  }
}

await works('insert, find, update, aggregate', async () => {
  const text = await shell(
    `db.c.insertMany([{ _id: 1, name: 'Ann' }, { _id: 2, name: 'bob' }])`,
    `db.c.updateOne({ _id: 1 }, { $set: { n: 1 } })`,
    `db.c.aggregate([{ $match: { n: 1 } }, { $project: { name: 1 } }]).toArray()`,
  );
  same(text, [{ _id: 1, name: 'Ann' }]);
});
await works('indexes, collation, explain', async () => {
  const plan = await shell(
    `db.c.createIndex({ name: 1 }, { collation: { locale: 'en', strength: 2 } })`,
    `db.c.find({ name: 'ANN' }).collation({ locale: 'en', strength: 2 }).explain().queryPlanner.winningPlan`,
  );
  same(plan.inputStage.indexName, 'name_1');
});
await works('stats, dataSize, validate, currentOp, serverStatus', async () => {
  const told = await shell(
    `[db.c.stats().count, db.c.dataSize() > 0, db.c.validate().valid, db.currentOp().inprog.length, db.serverStatus().ok]`,
  );
  same(told, [2, true, true, 0, 1]);
});
await works('names of databases and collections, getLog', async () => {
  same(await shell(`db.getCollectionNames()`), ['c']);
  same((await shell(`db.adminCommand({ listDatabases: 1 }).databases.map((one) => one.name)`)).includes('shell'), true);
  same((await shell(`db.adminCommand({ getLog: 'startupWarnings' })`)).ok, 1);
});
await works('transactions', () =>
  shell(
    `s = db.getMongo().startSession()`,
    `s.startTransaction()`,
    `s.getDatabase('shell').c.insertOne({ a: 1 })`,
    `s.commitTransaction()`,
  ),
);
await refused('replica sets', /no such command|not running with --replSet|NoReplicationEnabled|replSetGetStatus/, () =>
  shell(`rs.status()`),
);
await refused('users', /no such command/, () => shell(`db.createUser({ user: 'a', pwd: 'b', roles: [] })`));
await works('clean up', () => shell(`db.dropDatabase()`));
