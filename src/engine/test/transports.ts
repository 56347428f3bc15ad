import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { type DataDb, openEngine } from '../index.js';

/** One way to reach a database with the driver's interface. */
export interface Transport {
  name: string;
  /** True for a server that is not ours: what only our engine promises is left out. */
  foreign: boolean;
  open(): Promise<OpenTransport>;
}

export interface OpenTransport {
  db(name: string): DataDb;
  close(): Promise<void>;
}

/** A fresh directory below the system's for temporary files. */
export function temporaryDir(): string {
  return mkdtempSync(join(tmpdir(), 'bsvc-engine-'));
}

const inProcess: Transport = {
  name: 'in-process transport',
  foreign: false,
  open() {
    const dataDir = temporaryDir();
    const engine = openEngine({ dataDir });
    return Promise.resolve({
      db: (name) => engine.db(name),
      async close() {
        await engine.close();
        rmSync(dataDir, { recursive: true, force: true });
      },
    });
  },
};

const throughThreads: Transport = {
  name: 'in-process transport with reader threads',
  foreign: false,
  open() {
    const dataDir = temporaryDir();
    const engine = openEngine({ dataDir, readerThreads: 1 });
    return Promise.resolve({
      db: (name) => engine.db(name),
      async close() {
        await engine.close();
        rmSync(dataDir, { recursive: true, force: true });
      },
    });
  },
};

const overTheWire: Transport = {
  name: 'official driver over the wire transport',
  foreign: false,
  async open() {
    const dataDir = temporaryDir();
    const engine = openEngine({ dataDir });
    const { uri } = await engine.listen(`unix:${join(dataDir, 'wire.sock')}`);
    const client = await MongoClient.connect(uri);
    return {
      db: (name) => client.db(name) as unknown as DataDb,
      async close() {
        await client.close();
        await engine.close();
        rmSync(dataDir, { recursive: true, force: true });
      },
    };
  },
};

function otherServer(uri: string): Transport {
  return {
    name: 'another server',
    foreign: true,
    async open() {
      const client = await MongoClient.connect(uri);
      return { db: (name) => client.db(name) as unknown as DataDb, close: () => client.close() };
    },
  };
}

const uri = process.env['BSVC_TEST_MONGODB_URI'];

/** Each transport the conformance suite runs through. */
export const TRANSPORTS: readonly Transport[] = [
  inProcess,
  throughThreads,
  overTheWire,
  ...(uri === undefined ? [] : [otherServer(uri)]),
];
