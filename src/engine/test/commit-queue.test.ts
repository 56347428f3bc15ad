import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openEngine } from '../index.js';
import { CommitQueue } from '../storage/commit-queue.js';
import { type Environment, openEnvironment } from '../storage/file/environment.js';
import { temporaryDir } from './transports.js';

describe('the commit queue', () => {
  let dataDir: string;
  let environment: Environment;

  beforeEach(() => {
    dataDir = temporaryDir();
    environment = openEnvironment(dataDir, 'relaxed');
  });

  afterEach(async () => {
    await environment.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  function openQueue(begin: () => void): CommitQueue {
    return new CommitQueue(environment, { begin, beforeCommit: () => undefined, aborted: () => undefined });
  }

  const key = (text: string): Buffer => Buffer.from(`\xf0${text}`, 'latin1');

  it('refuses all that waits when a transaction cannot even begin, and works again when it can', async () => {
    let broken = true;
    const queue = openQueue(() => {
      if (broken) throw new Error('unreadable');
    });
    const waiting = [1, 2, 3].map((n) => queue.write(() => n));
    for (const write of waiting) await expect(write).rejects.toThrow('unreadable');
    broken = false;
    expect(await queue.write(() => 4)).toBe(4);
    broken = true;
    const last = queue.write(() => 5);
    await Promise.all([queue.close(), expect(last).rejects.toThrow('unreadable')]);
  });

  it('undoes a job that fails after its first change, and nothing of its neighbours', async () => {
    const queue = openQueue(() => undefined);
    const good = queue.write(() => {
      queue.put(key('good'), key('1'));
    });
    const bad = queue.write(() => {
      queue.put(key('bad'), key('1'));
      throw new Error('in the middle');
    });
    await good;
    await expect(bad).rejects.toThrow('in the middle');
    environment.store.resetReadTxn();
    expect(environment.store.getBinary(key('good'))).toEqual(key('1'));
    expect(environment.store.getBinary(key('bad'))).toBeUndefined();
  });

  it('commits what waits when the engine is closed', async () => {
    const dir = temporaryDir();
    const engine = openEngine({ dataDir: dir });
    const insert = engine.db('d').collection('c').insertOne({ n: 1 });
    await engine.close();
    await insert;
    const again = openEngine({ dataDir: dir });
    expect(await again.db('d').collection('c').countDocuments()).toBe(1);
    await again.close();
    rmSync(dir, { recursive: true, force: true });
  });

  it('leaves a whole file when one transaction makes values large and small again', async () => {
    const dir = temporaryDir();
    const engine = openEngine({ dataDir: dir, durability: 'relaxed' });
    const texts = engine.db('d').collection<{ _id: number; text: string }>('texts');
    await texts.insertMany([0, 1, 2, 3].map((_id) => ({ _id, text: '' })));
    const sizes = [90_000, 20_000, 5_000, 3_000, 10, 40_000];
    // LMDB keeps the pages of a value that shrinks in the transaction which wrote it.
    for (const [_id, from] of [0, 1, 2, 3].entries()) {
      await Promise.all(sizes.slice(from).map((size) => texts.replaceOne({ _id }, { text: 'x'.repeat(size) })));
      await Promise.all(sizes.slice(0, 5 - from).map((size) => texts.replaceOne({ _id }, { text: 'x'.repeat(size) })));
    }
    expect(await engine.verify()).toEqual([]);
    await engine.close();
    const again = openEngine({ dataDir: dir, durability: 'relaxed' });
    const found = await again.db('d').collection<{ _id: number; text: string }>('texts').find().toArray();
    expect(found.map(({ text }) => text.length)).toEqual([10, 3_000, 5_000, 20_000]);
    await again.close();
    rmSync(dir, { recursive: true, force: true });
  });
});
