import { rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { openEngine } from '../index.js';
import { temporaryDir } from './transports.js';

it('serverStatus tells which commands were asked for, and that some were unknown', async () => {
  const dataDir = temporaryDir();
  const engine = openEngine({ dataDir });
  const db = engine.db('test');
  await db.collection('things').insertOne({ a: 1 });
  await db.collection('things').findOne({});
  await db.collection('things').findOne({});
  await expect(db.command({ mapReduce: 'things' })).rejects.toMatchObject({ code: 59 });
  const { metrics } = (await db.command({ serverStatus: 1 })) as { metrics: { commands: object } };
  expect(metrics.commands).toMatchObject({ insert: { total: 1 }, find: { total: 2 }, '<UNKNOWN>': { total: 1 } });
  await engine.close();
  rmSync(dataDir, { recursive: true });
});
