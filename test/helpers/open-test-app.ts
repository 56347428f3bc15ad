import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { createApi } from '../../src/api.js';
import { openApp, type App } from '../../src/app.js';
import { loadConfig, type Constants } from '../../src/config/config.js';
import { ENGINE_COMMANDS } from '../../src/engine/commands/index.js';
import { openEngine } from '../../src/engine/index.js';
import { migrate } from '../../src/migrations/migrate.js';
import { systemClock, type Clock } from '../../src/platform/time/clock.js';
import { openLogger } from '../../src/platform/observe/logger.js';
import type { Telemetry } from '../../src/platform/observe/telemetry.js';
import { listen } from './listen.js';
import { throwViolations } from './reply-violations.js';
import { startReplicaSet } from './replica-set.js';
import { openTempDir } from './temp-dir.js';
import { watchReplies } from './watch-replies.js';

export interface TestApp {
  app: App;
  /** A listening server for supertest and fetch. */
  server: Server;
  url: string;
  dataDir: string;
  /** Every line the app has logged. */
  logLines: string[];
  close(): Promise<void>;
}

export interface TestAppOptions {
  /** Settings by environment name. */
  settings?: Record<string, string>;
  /** Other constants than the ones of the service. */
  constants?: Partial<Constants>;
  clock?: Clock;
  telemetry?: Telemetry | null;
}

/**
 * The real application on a new, empty database: the embedded engine, a replica set of one that the driver reaches over
 * its wire transport when BSVC_TEST_TRANSPORT=wire, or the server that BSVC_TEST_MONGODB_URI names.
 */
export async function openTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const { path: dataDir, remove } = await openTempDir();
  const database = await openTestDatabase(dataDir);
  const logLines: string[] = [];
  const values = {
    BSVC_DATA_DIR: dataDir,
    BSVC_DURABILITY: 'relaxed',
    BSVC_LOG_LEVEL: 'info',
    // Never met, but told of in every reply.
    BSVC_RATE_LIMIT: '1000000/15m',
    BSVC_AUTH_RATE_LIMIT: '1000000/15m',
    ...database.settings,
    ...options.settings,
  };
  // Reader threads would have to be started from source; a test that needs them says so.
  const constants = { readerThreads: 0, ...options.constants };
  const { config } = loadConfig([{ source: 'test', values }], constants);
  const log = openLogger({ level: config.logLevel, format: 'json' }, { write: (line) => logLines.push(line) });
  const app = await openApp(config, log, options.clock ?? systemClock, options.telemetry);
  await migrate(app.db);
  const server = createServer(createApi(app).callback());
  // What a folder holds, no document describes.
  if (config.publicDir === null) watchReplies(server, config.rateLimit ? true : config.authRateLimit ? null : false);
  const { url, close } = await listen(server);
  return {
    app,
    server,
    url,
    dataDir,
    logLines,
    async close() {
      await close();
      await app.close();
      await database.close();
      await remove();
      throwViolations();
    },
  };
}

const MASTER_KEY = 'a-master-key-for-tests-only-0123456789';

interface TestDatabase {
  settings: Record<string, string>;
  close(): Promise<void>;
}

/**
 * A database of its own on the server that BSVC_TEST_MONGODB_URI names, whatever database stands there; dropped at the
 * end.
 */
function openForeign(uri: string): TestDatabase {
  const name = `bsvc_test_${randomBytes(8).toString('hex')}`;
  const [, server = '', path = '', query = ''] = /^([^/]+:\/\/[^/?]+)\/?([^?]*)\??(.*)$/.exec(uri) ?? [];
  const options = new URLSearchParams(query);
  // A user is looked for in the database that the path names, unless this says where.
  if (server.includes('@') && !options.has('authSource')) options.set('authSource', path === '' ? 'admin' : path);
  const own = `${server}/${name}?${options.toString()}`;
  return {
    settings: { MONGODB_URI: own, BSVC_SECRET_KEY: MASTER_KEY },
    async close() {
      const client = await MongoClient.connect(own);
      await client.db(name).dropDatabase();
      await client.close();
    },
  };
}

/** Where the test's data is: nowhere yet, on another server, or an engine of its own that the driver connects to. */
async function openTestDatabase(dataDir: string): Promise<TestDatabase> {
  const foreign = process.env.BSVC_TEST_MONGODB_URI;
  if (foreign !== undefined) return openForeign(foreign);
  if (process.env.BSVC_TEST_TRANSPORT !== 'wire') return { settings: {}, close: () => Promise.resolve() };
  const engine = openEngine({ dataDir: join(dataDir, 'wire'), durability: 'relaxed' });
  const replicaSet = await startReplicaSet(engine);
  return {
    settings: { MONGODB_URI: replicaSet.uri, BSVC_SECRET_KEY: MASTER_KEY },
    async close() {
      await replicaSet.close();
      const { metrics } = await engine.db('admin').command({ serverStatus: 1 });
      await engine.close();
      const { commands } = metrics as { commands: Record<string, { total: number }> };
      // The application may use nothing of a database that the engine's table of commands does not list.
      const unlisted = Object.keys(commands).filter((name) => !Object.hasOwn(ENGINE_COMMANDS, name));
      if (unlisted.length > 0) throw new Error(`commands outside the supported table: ${unlisted.join(', ')}`);
    },
  };
}
