import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Collection, MongoClient } from 'mongodb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openEngine, type Engine } from '../../src/engine/index.js';
import { loadDriver } from '../../src/platform/database/mongodb-driver.js';
import { eventually } from '../helpers/eventually.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

let dir: TempDir;
let engine: Engine;
let cable: Server;
/**
 * The cable's ends of the client's connections, the oldest first: that is the one by which the driver watches the
 * server.
 */
let sockets: Socket[];
let isCut: boolean;
/** Bytes that arrived after the answers were cut off. */
let unanswered: number;
let client: MongoClient;
let notes: Collection;

beforeEach(async () => {
  dir = await openTempDir();
  engine = openEngine({ dataDir: join(dir.path, 'engine') });
  const { port } = new URL((await engine.listen('127.0.0.1:0')).uri);
  sockets = [];
  isCut = false;
  cable = createServer((socket) => {
    const target = connect(Number(port), '127.0.0.1');
    const pass = (bytes: Buffer): void => {
      if (isCut) unanswered += bytes.length;
      else target.write(bytes);
    };
    socket.on('data', pass).on('error', () => undefined);
    socket.on('close', () => target.destroy());
    target.on('data', (bytes) => void socket.write(bytes));
    sockets.push(socket);
  }).listen(0, '127.0.0.1');
  await once(cable, 'listening');
  const { MongoClient } = await loadDriver();
  client = new MongoClient(`mongodb://127.0.0.1:${(cable.address() as AddressInfo).port}/?directConnection=true`, {
    socketTimeoutMS: 500,
    serverSelectionTimeoutMS: 5_000,
    minHeartbeatFrequencyMS: 1,
    heartbeatFrequencyMS: 60_000,
  });
  notes = client.db('test').collection('notes');
  await notes.insertOne({ text: 'the connections are made' });
});
afterEach(async () => {
  await client.close();
  for (const socket of sockets) socket.destroy();
  cable.close();
  await engine.close();
  await dir.remove();
});

describe('a connection that fails while a command is written to it', () => {
  it('fails the command', async () => {
    // Nobody takes the bytes: more than the buffers of both ends hold, until the driver gives the connection up.
    for (const socket of sockets) socket.pause();
    await expect(notes.insertOne({ text: 'x'.repeat(12 * 1024 * 1024) })).rejects.toThrow('connection closed');
  });

  it('leaves no client without a server, even when the question for the server was what was written', async () => {
    for (let round = 0; round < 5; round++) {
      unanswered = 0;
      isCut = true;
      const insert = notes.insertOne({ round }).catch((error: Error) => error.message);
      await eventually('the command is under way', () => unanswered > 0);
      // Both close at once: the failed command makes the driver ask for the server by a connection that it does not
      // know to be closed.
      for (const socket of sockets) socket.destroy();
      isCut = false;
      expect(await insert).toContain('closed');
      expect(await notes.countDocuments({})).toBe(1);
    }
  });
});
