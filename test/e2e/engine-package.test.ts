import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readExamples, readGuides } from '../helpers/guide-examples.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

const ROOT = join(import.meta.dirname, '../..');
/** What the guide says of mongoose: it connects to the same address. */
const MONGOOSE = `
import mongoose from 'mongoose';
test('mongoose: schemas, populate', async () => {
  const Customer = mongoose.model('Customer', new mongoose.Schema({ name: String }));
  const customer = { type: mongoose.Types.ObjectId, ref: 'Customer' };
  const Order = mongoose.model('Order', new mongoose.Schema({ number: Number, customer }));
  await Order.create({ number: 3, customer: await Customer.create({ name: 'Ada' }) });
  assert.equal((await Order.findOne({ number: 3 }).populate('customer')).customer.name, 'Ada');
});
`;
const GUIDE = readExamples(readGuides().get('mongodb-for-tests.md')!);

/** What somebody writes who has the package alone: every kind of call, those that start a thread or a process too. */
const PROGRAM = `
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { type Engine, lookAfterKill, openEngine, verifyDataFile } from '@bsvc/engine';

interface Item { _id: number; group: number; text: string }

const dataDir = process.argv[2]!;
if (process.argv[3] === 'die') {
  const engine = openEngine({ dataDir });
  await engine.db('d').collection<Item>('items').insertOne({ _id: -1, group: 0, text: 'kept' });
  process.kill(process.pid, 'SIGKILL');
}
const engine: Engine = openEngine({ dataDir, readerThreads: 1 });
const items = engine.db('d').collection<Item>('items');
await items.createIndex({ text: 1 }, { unique: true });
await items.insertMany(Array.from({ length: 20_000 }, (_, n) => ({ _id: n, group: n % 10, text: 'item ' + n })));
await assert.rejects(items.insertOne({ _id: 20_000, group: 0, text: 'item 7' }), { code: 11000 });
const groups = await items.aggregate([{ $group: { _id: '$group', count: { $sum: 1 } } }]).toArray();
assert.equal(groups.length, 10);
assert.equal(engine.stats().readerThreadsStarted, 1);

const logs = engine.changeLogs('d');
const start = (await logs.begin('items', { first: [], omit: [] }))!;
await engine.transaction('d', (tx) => {
  tx.put('items', { ...tx.get<Item>('items', 7)!, text: 'seventh' });
});
assert.equal((await logs.begin('items', { first: [], omit: [] }))!.seq, start.seq + 1);

mkdirSync(dataDir + '/copy');
await engine.backup(dataDir + '/copy/bsvc.mdb');
assert.deepEqual(await engine.verify(), []);
await engine.close();
assert.deepEqual(await verifyDataFile(dataDir), []);

assert.throws(() => execFileSync(process.execPath, [process.argv[1]!, dataDir + '/copy', 'die'], { stdio: 'ignore' }));
await lookAfterKill(dataDir + '/copy', 60_000);
const copy = openEngine({ dataDir: dataDir + '/copy' });
assert.equal(await copy.db('d').collection<Item>('items').countDocuments({ text: { $in: ['seventh', 'kept'] } }), 2);
await copy.close();
console.log('used');
`;

describe('the package of the engine, installed outside of this checkout', () => {
  let dir: TempDir;
  let files: string[];
  let about: { version: string; dependencies: Record<string, string> };
  const installed = (...path: string[]): string => join(dir.path, 'node_modules', ...path);

  /** As npm does it, but that the packages that it asks for are there already. */
  const link = (name: string): void => {
    mkdirSync(dirname(installed(name)), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), installed(name));
  };

  beforeAll(async () => {
    dir = await openTempDir();
    mkdirSync(installed('@bsvc'), { recursive: true });
    const words = ['pack', '--silent', '--workspace', 'src/engine', '--pack-destination', dir.path];
    execFileSync('npm', words, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
    const [tarball] = readdirSync(dir.path).filter((name) => name.endsWith('.tgz'));
    execFileSync('tar', ['-xzf', join(dir.path, tarball!)], { cwd: dir.path });
    execFileSync('mv', [join(dir.path, 'package'), installed('@bsvc/engine')]);
    files = readdirSync(installed('@bsvc/engine'), { recursive: true, encoding: 'utf8' });
    about = JSON.parse(readFileSync(installed('@bsvc/engine/package.json'), 'utf8')) as typeof about;
    for (const name of Object.keys(about.dependencies)) link(name);
    writeFileSync(join(dir.path, 'package.json'), '{"type":"module"}');
  });
  afterAll(() => dir.remove());

  it('has the engine, its README and its license, and neither sources nor tests', () => {
    expect(files).toEqual(expect.arrayContaining(['README.md', 'dist/LICENSE', 'dist/index.js']));
    expect(files.filter((name) => /test|\.mjs$|(?<!\.d)\.ts$/.test(name))).toEqual([]);
    const root = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(about.version).toBe(root.version);
  });

  it('is used by a program in TypeScript, whose types it has', () => {
    link('@types/node');
    writeFileSync(join(dir.path, 'use.ts'), PROGRAM);
    const words = ['--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node', '--skipLibCheck'];
    execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript-native/bin/tsc'), ...words, 'use.ts'], {
      cwd: dir.path,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const told = execFileSync(process.execPath, ['use.js', join(dir.path, 'data')], {
      cwd: dir.path,
      encoding: 'utf8',
    });
    expect(told).toBe('used\n');
  });

  it('runs the tests of the guide, by the official driver and mongoose', () => {
    link('mongoose');
    const { file, text } = GUIDE.find(({ file: name }) => name === 'orders-test.mjs')!;
    const inside = GUIDE.find(({ text: other }) => other.startsWith('const orders = engine.db('))!.text;
    const connected = text
      .replace('client = await MongoClient.connect(uri);', "$&\n  await mongoose.connect(uri, { dbName: 'shop' });")
      .replace('await client.close();', 'await mongoose.disconnect();\n  $&');
    writeFileSync(
      join(dir.path, file!),
      `${connected}\ntest('in the process', async () => {\n${inside}});\n${MONGOOSE}`,
    );
    const told = execFileSync(process.execPath, ['--test', '--test-reporter=tap', file!], {
      cwd: dir.path,
      encoding: 'utf8',
    });
    expect(told).toContain('# pass 3');
    expect(told).toContain('# fail 0');
  });
});
