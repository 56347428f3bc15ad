import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { deserialize, Long, serialize } from 'bson';
import { MongoClient } from 'mongodb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Engine, ListenError, openEngine } from '../index.js';
import { temporaryDir } from './transports.js';

describe('the wire transport', () => {
  let dataDir: string;
  let engine: Engine;
  let path: string;

  beforeEach(() => {
    dataDir = temporaryDir();
    engine = openEngine({ dataDir });
    path = join(dataDir, 'wire.sock');
  });

  afterEach(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Sends bytes and waits for the first answer, or for the connection to be closed (null). */
  async function exchange(bytes: Buffer): Promise<Buffer | null> {
    const socket = connect(path);
    socket.on('error', () => undefined);
    socket.write(bytes);
    const answer = await new Promise<Buffer | null>((resolve) => {
      let received = Buffer.alloc(0);
      socket.on('data', (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        if (received.length >= 4 && received.length >= received.readInt32LE(0)) resolve(received);
      });
      socket.on('close', () => {
        resolve(null);
      });
    });
    socket.destroy();
    return answer;
  }

  function message(
    command: object,
    { flags = 0, lists = {} }: { flags?: number; lists?: Record<string, object[]> } = {},
  ): Buffer {
    const sections = [Buffer.from([0]), Buffer.from(serialize(command))];
    for (const [name, docs] of Object.entries(lists)) {
      const content = Buffer.concat([Buffer.from(`${name}\0`), ...docs.map((doc) => Buffer.from(serialize(doc)))]);
      const size = Buffer.alloc(4);
      size.writeInt32LE(content.length + 4);
      sections.push(Buffer.from([1]), size, content);
    }
    const body = Buffer.concat(sections);
    const head = Buffer.alloc(20);
    head.writeInt32LE(20 + body.length, 0);
    head.writeInt32LE(7, 4);
    head.writeInt32LE(2013, 12);
    head.writeUInt32LE(flags, 16);
    return Buffer.concat([head, body]);
  }

  async function reply(bytes: Buffer): Promise<Record<string, unknown>> {
    const answer = await exchange(bytes);
    expect(answer!.readInt32LE(8)).toBe(7);
    return deserialize(answer!.subarray(21));
  }

  it('answers a command whose lists come beside its body, and one that comes in many pieces', async () => {
    await engine.listen(`unix:${path}`);
    const inserted = await reply(message({ insert: 'c', $db: 'd' }, { lists: { documents: [{ a: 1 }, { a: 2 }] } }));
    expect(inserted).toMatchObject({ n: 2, ok: 1 });
    const socket = connect(path);
    const bytes = message({ count: 'c', $db: 'd' });
    for (const byte of bytes) {
      socket.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(deserialize(answer.subarray(21))).toMatchObject({ n: 2, ok: 1 });
    socket.destroy();
  });

  it('answers the old handshake', async () => {
    await engine.listen(`unix:${path}`);
    const query = Buffer.concat([
      Buffer.alloc(4),
      Buffer.from('admin.$cmd\0'),
      Buffer.alloc(8),
      serialize({ ismaster: 1 }),
    ]);
    const head = Buffer.alloc(16);
    head.writeInt32LE(16 + query.length, 0);
    head.writeInt32LE(2004, 12);
    const answer = await exchange(Buffer.concat([head, query]));
    expect(answer!.readInt32LE(12)).toBe(1);
    expect(deserialize(answer!.subarray(36))).toMatchObject({ ismaster: true, maxWireVersion: 21, ok: 1 });
  });

  it('refuses what is no command with a code and goes on serving', async () => {
    await engine.listen(`unix:${path}`);
    expect(await reply(message({ ping: 1 }))).toMatchObject({ ok: 0, code: 40571 });
    expect(await reply(message({ shutdown: 1, $db: 'admin' }))).toMatchObject({
      ok: 0,
      code: 59,
      codeName: 'CommandNotFound',
    });
    expect(await reply(message({ ping: 1, $db: 'd' }, { flags: 4 }))).toMatchObject({ ok: 0, code: 17 });
    const damaged = message({ insert: 'c', $db: 'd' }, { lists: { documents: [{ a: 'text' }] } });
    damaged[damaged.length - 7] = 0xee;
    expect((await reply(damaged))['ok']).toBe(0);
    const transaction = message({ insert: 'c', documents: [{ a: 1 }], $db: 'd', startTransaction: true });
    expect(await reply(transaction)).toMatchObject({ ok: 0, code: 40415 });
    expect(await engine.db('d').collection('c').countDocuments()).toBe(0);
    expect(await reply(message({ ping: 1, $db: 'd' }))).toMatchObject({ ok: 1 });
  });

  it('answers what shells and graphical tools ask of a server', async () => {
    await engine.listen(`unix:${path}`);
    await engine
      .db('d')
      .collection('c')
      .insertMany([{ a: 1 }, { a: 2 }]);
    await engine.db('d').collection('c').createIndex({ a: 1 });
    const ask = (body: object, $db = 'admin'): Promise<Record<string, unknown>> => reply(message({ ...body, $db }));
    expect(await ask({ validate: 'c' }, 'd')).toMatchObject({
      ok: 1,
      valid: true,
      nrecords: 2,
      nIndexes: 2,
      keysPerIndex: { _id_: 2, a_1: 2 },
      errors: [],
    });
    expect(await ask({ validate: 'none' }, 'd')).toMatchObject({ ok: 0, code: 26 });
    const stages = (pipeline: object[]): Promise<Record<string, unknown>> =>
      ask({ aggregate: 'c', pipeline, cursor: {} }, 'd');
    expect(await stages([{ $collStats: { count: {}, storageStats: {} } }])).toMatchObject({
      cursor: {
        firstBatch: [{ ns: 'd.c', count: 2, storageStats: { count: 2, nindexes: 2, indexSizes: { a_1: 4096 } } }],
      },
    });
    expect(await stages([{ $match: {} }, { $collStats: {} }])).toMatchObject({ ok: 0, code: 115 });
    expect(await ask({ aggregate: 1, pipeline: [{ $currentOp: {} }], cursor: {} })).toMatchObject({
      cursor: { firstBatch: [] },
    });
    expect(await ask({ getParameter: 1, featureCompatibilityVersion: 1 })).toMatchObject({
      ok: 1,
      featureCompatibilityVersion: { version: '7.0' },
    });
    expect(await ask({ getParameter: 1, unheardOf: 1 })).toMatchObject({ ok: 0 });
    expect(await ask({ getLog: 'startupWarnings' })).toMatchObject({ ok: 1, log: [] });
    expect(await ask({ getCmdLineOpts: 1 })).toMatchObject({ ok: 1, argv: [] });
    expect(await ask({ whatsmyuri: 1 })).toMatchObject({ ok: 1 });
    expect(await ask({ currentOp: 1, $all: true })).toMatchObject({ ok: 1, inprog: [] });
    expect(await ask({ replSetGetStatus: 1 })).toMatchObject({ ok: 0, code: 76 });
    expect(await ask({ validate: 'c', scandata: false, full: false }, 'd')).toMatchObject({ ok: 1, valid: true });
    expect(await ask({ hello: 1, loadBalanced: false })).toMatchObject({ ok: 1 });
    expect(await ask({ hello: 1, loadBalanced: true })).toMatchObject({ ok: 0, code: 2 });
    expect(await ask({ getParameter: 1, logComponentVerbosity: 1 })).toMatchObject({ logComponentVerbosity: {} });
    expect(await ask({ hostInfo: 1 })).toMatchObject({ ok: 1, system: { numCores: expect.any(Number) as number } });
    const { commands } = await ask({ listCommands: 1 });
    expect(commands).toMatchObject({ find: {}, hostInfo: {}, listCommands: {} });
    expect(await stages([{ $indexStats: {} }, { $project: { name: 1, ops: '$accesses.ops' } }])).toMatchObject({
      cursor: { firstBatch: [{ name: '_id_', ops: 0 }, { name: 'a_1' }] },
    });
    expect(await ask({ find: 'c', min: {}, max: {} }, 'd')).toMatchObject({ ok: 1 });
    expect(await ask({ find: 'c', min: { a: 1 } }, 'd')).toMatchObject({ ok: 0, code: 115 });
    const text = { key: { title: 'text' }, name: 'text', default_language: 'none', weights: { title: 1 } };
    expect(await ask({ createIndexes: 'c', indexes: [text] }, 'd')).toMatchObject({ ok: 0, code: 67 });
    for (const name of ['top', 'dbHash']) expect(await ask({ [name]: 1 })).toMatchObject({ ok: 0, code: 59 });
  });

  it('tells clients with a password why they are refused', async () => {
    const { uri } = await engine.listen('127.0.0.1:0');
    const named = MongoClient.connect(uri.replace('://', '://ann:secret@'), { serverSelectionTimeoutMS: 2000 });
    await expect(named).rejects.toThrow(/has no users.*Leave user and password out/);
  });

  it('closes the connection on bytes that are no messages', async () => {
    await engine.listen(`unix:${path}`);
    expect(await exchange(Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'))).toBeNull();
    const huge = Buffer.alloc(16);
    huge.writeInt32LE(0x7fffffff, 0);
    expect(await exchange(huge)).toBeNull();
    const negative = Buffer.alloc(16);
    negative.writeInt32LE(-1, 0);
    expect(await exchange(negative)).toBeNull();
  });

  it('does not answer a message that asks for no reply', async () => {
    await engine.listen(`unix:${path}`);
    const silent = message({ insert: 'c', documents: [{ _id: 1 }], $db: 'd' }, { flags: 2 });
    const asked = message({ find: 'c', filter: {}, $db: 'd' });
    const answer = await exchange(Buffer.concat([silent, asked]));
    expect(deserialize(answer!.subarray(21))).toMatchObject({ cursor: { firstBatch: [{ _id: 1 }] } });
  });

  it('does not answer a refusal either when no reply is asked for', async () => {
    await engine.listen(`unix:${path}`);
    const refused = message({ insert: 'c', documents: [{ _id: 1 }], $db: 'd', unknown: 1 }, { flags: 2 });
    const answer = await exchange(Buffer.concat([refused, message({ count: 'c', $db: 'd' })]));
    expect(deserialize(answer!.subarray(21))).toMatchObject({ n: 0, ok: 1 });
  });

  it.each<[string, object, number]>([
    ['a cursor id that is no number', { getMore: 'x', collection: 'c' }, 14],
    ['a cursor id with a fraction', { getMore: 1.5, collection: 'c' }, 14],
    ['cursors to close that are no numbers', { killCursors: 'c', cursors: ['x'] }, 14],
    ['documents that are none', { insert: 'c', documents: [5] }, 14],
    ['statements that are no documents', { update: 'c', updates: [5] }, 14],
    ['an explained command that is a property of every object', { explain: { constructor: 'c' } }, 59],
    ['explained statements that are no list', { explain: { update: 'c', updates: 5 } }, 14],
    ['a database with a dot', { find: 'c', $db: 'a.b' }, 73],
    ['a database without a name', { dropDatabase: 1, $db: '' }, 73],
    ['a database with a very long name', { listCollections: 1, $db: 'x'.repeat(5000) }, 73],
    ['a collection with a very long name', { find: 'x'.repeat(5000) }, 73],
    ['a very long new name', { renameCollection: 'd.c', to: `d.${'x'.repeat(5000)}`, $db: 'admin' }, 73],
    ['a new name without a database', { renameCollection: 'd.c', to: 'c', $db: 'admin' }, 73],
    ['a hint with a long integer', { find: 'c', hint: { b: Long.fromNumber(1) } }, 2],
    ['an index to drop that is neither name nor key', { dropIndexes: 'c', index: 5 }, 14],
    ['an expiry that is no number of seconds', { collMod: 'c', index: { name: 'a_1', expireAfterSeconds: NaN } }, 72],
  ])('refuses %s', async (_what, command, code) => {
    const errors: unknown[] = [];
    await engine.listen(`unix:${path}`, (error) => errors.push(error));
    await reply(message({ createIndexes: 'c', indexes: [{ key: { a: Long.fromNumber(1) }, name: 'a_1' }], $db: 'd' }));
    const answer = await reply(message('$db' in command ? command : { ...command, $db: 'd' }));
    const [refusal = answer] = (answer['writeErrors'] as Record<string, unknown>[] | undefined) ?? [];
    expect(refusal).toMatchObject({ code });
    expect(errors).toEqual([]);
  });

  it('refuses documents that could not be read again', async () => {
    await engine.listen(`unix:${path}`);
    const insert = (doc: object, damage: (bytes: Buffer) => void): Promise<Record<string, unknown>> => {
      const bytes = message({ insert: 'c', $db: 'd' }, { lists: { documents: [doc] } });
      damage(bytes);
      return reply(bytes);
    };
    const noLength = await insert({ _id: 1, bytes: Buffer.alloc(0) }, (bytes) => {
      bytes.writeInt32LE(-1, bytes.indexOf('bytes\0') + 6);
    });
    expect(noLength).toMatchObject({ ok: 0, code: 22, codeName: 'InvalidBSON' });
    const twoIds = await insert({ _id: 1, xid: 2 }, (bytes) => bytes.write('_id', bytes.indexOf('xid')));
    expect(twoIds).toMatchObject({ ok: 0, code: 2 });
    expect(await engine.db('d').collection('c').countDocuments()).toBe(0);
  });

  it('goes on with a cursor over another connection when the one that opened it is gone', async () => {
    await engine.listen(`unix:${path}`);
    await engine
      .db('d')
      .collection('c')
      .insertMany(Array.from({ length: 10 }, (_, n) => ({ n })));
    for (const command of [
      { find: 'c', batchSize: 4 },
      { aggregate: 'c', pipeline: [{ $match: { n: { $gte: 0 } } }], cursor: { batchSize: 4 } },
    ]) {
      const socket = connect(path);
      socket.write(message({ ...command, $db: 'd' }));
      const [answer] = (await once(socket, 'data')) as [Buffer];
      const { cursor } = deserialize(answer.subarray(21), { promoteLongs: false }) as { cursor: { id: Long } };
      socket.end();
      await once(socket, 'close');
      const more = await reply(message({ getMore: cursor.id, collection: 'c', $db: 'd' }));
      expect((more['cursor'] as { nextBatch: object[] }).nextBatch).toHaveLength(6);
    }
  });

  it('listens on loopback and sockets of the owner only', async () => {
    for (const address of [
      '0.0.0.0:0',
      '192.168.1.1:0',
      'example.test:1',
      '27017',
      'unix:relative.sock',
      `unix:${dataDir}/transport`,
    ]) {
      await expect(engine.listen(address), address).rejects.toBeInstanceOf(ListenError);
    }
    await expect(engine.listen(`unix:/${'x'.repeat(110)}.sock`)).rejects.toThrow('107');
    await engine.listen(`unix:${path}`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const { uri } = await engine.listen('127.0.0.1:0');
    const client = await MongoClient.connect(uri);
    expect(await client.db('d').command({ ping: 1 })).toMatchObject({ ok: 1 });
    await client.close();
  });

  it('takes over the socket file of a process that died, but not of one that lives', async () => {
    const other = createServer();
    other.listen(path);
    await once(other, 'listening');
    await expect(engine.listen(`unix:${path}`)).rejects.toBeInstanceOf(ListenError);
    other.close();
    await once(other, 'close');
    writeFileSync(join(dataDir, 'x'), '');
    await engine.listen(`unix:${path}`);
    expect(existsSync(path)).toBe(true);
  });

  it('leaves a file alone that is no socket, and says why a path cannot be listened on', async () => {
    writeFileSync(path, 'precious');
    await expect(engine.listen(`unix:${path}`)).rejects.toBeInstanceOf(ListenError);
    expect(readFileSync(path, 'utf8')).toBe('precious');
    await expect(engine.listen(`unix:${path}/below/wire.sock`)).rejects.toBeInstanceOf(ListenError);
  });

  it('stops working for a client that is gone', async () => {
    await engine.listen(`unix:${path}`);
    const items = engine.db('d').collection('c');
    await items.insertMany(Array.from({ length: 5000 }, (_, n) => ({ n })));
    const client = await MongoClient.connect(`mongodb://${encodeURIComponent(path)}`);
    const cursor = client.db('d').collection('c').find({}, { batchSize: 2 });
    await cursor.next();
    await client.close(true);
    expect(await items.countDocuments()).toBe(5000);
  });

  it('carries replies and documents of many megabytes', async () => {
    await engine.listen(`unix:${path}`);
    const client = await MongoClient.connect(`mongodb://${encodeURIComponent(path)}`);
    const items = client.db('d').collection<{ _id: number; text: string }>('c');
    const text = 'x'.repeat(5_000_000);
    await items.insertMany(Array.from({ length: 8 }, (_, n) => ({ _id: n, text })));
    const found = await items.find().sort({ text: 1, _id: -1 }).toArray();
    expect(found.map((doc) => doc._id)).toEqual([7, 6, 5, 4, 3, 2, 1, 0]);
    const grouped = await items.aggregate([{ $addFields: { copy: '$text' } }]).toArray();
    expect(grouped).toHaveLength(8);
    await client.close();
  });
});
