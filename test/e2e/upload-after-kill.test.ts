import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openApp, type App } from '../../src/app.js';
import { loadConfig } from '../../src/config.js';
import type { FileRecord } from '../../src/features/files/file.js';
import { fileStore, filesOf } from '../../src/features/files/file-store.js';
import { measureStorage } from '../../src/features/files/measure-storage.js';
import { sweepUploads } from '../../src/features/files/sweep-uploads.js';
import { migrate } from '../../src/migrations/migrate.js';
import { openLogger } from '../../src/platform/logger.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { listStoredFiles, openStorageClient, putSigned } from '../helpers/storage-client.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

const ROUNDS = 4;
const CLIENTS = 6;
const THREE_HOURS = 3 * 60 * 60 * 1000;

let dir: TempDir;
let owner: TestProject;

beforeAll(async () => {
  dir = await openTempDir();
  const app = await openStore();
  await migrate(app.db);
  owner = await buildProject(app);
  await app.close();
});
afterAll(() => dir.remove());

function openStore(aheadMs = 0): Promise<App> {
  const { config } = loadConfig([{ source: 'test', values: { BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'silent' } }]);
  const log = openLogger({ level: 'silent', format: 'json' }, { write: () => true });
  return openApp(config, log, { now: () => Date.now() + aheadMs });
}

async function startServer(): Promise<{ process: ChildProcess; url: string }> {
  const bin = join(import.meta.dirname, '../../bin/bsvc.js');
  const server = spawn(process.execPath, [bin, 'serve', '--port', '0', '--no-worker', '--json'], {
    env: { PATH: process.env.PATH, BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'silent', BSVC_RATE_LIMIT: 'off' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.startsWith('{')) return { process: server, url: (JSON.parse(line) as { url: string }).url };
  }
  throw new Error('the server ended before it was ready');
}

/** Uploads, signs, confirms and deletes until the server is gone; notes what was answered. */
async function workUntilGone(url: string, confirmed: Set<string>, deleted: Set<string>): Promise<void> {
  const storage = openStorageClient({ url }, owner.secret);
  try {
    for (let at = 0; ; at++) {
      const upload = await storage.upload(new Uint8Array(1000 + at), 'a.png');
      if (upload.status === 201) confirmed.add(upload.body.path);
      const { signedUrl, filePath } = (
        await storage.request({ filename: 'b.png', contentType: 'image/png', size: 500 })
      ).body;
      await putSigned(signedUrl, new Uint8Array(500), 'image/png');
      if (at % 3 > 0) {
        if ((await storage.confirm({ filePath, size: 500 })).status === 200) confirmed.add(filePath);
      }
      if (at % 3 === 2) {
        confirmed.delete(filePath);
        if ((await storage.remove(filePath)).status === 200) deleted.add(filePath);
      }
    }
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
  }
}

describe('uploads while the server is killed (kill -9)', () => {
  it('keep every answered file, bring back no deleted one, and leave the quota right once the sweep has come by', async () => {
    const confirmed = new Set<string>();
    const deleted = new Set<string>();
    for (let round = 0; round < ROUNDS; round++) {
      const server = await startServer();
      const clients = Array.from({ length: CLIENTS }, () => workUntilGone(server.url, confirmed, deleted));
      const enough = confirmed.size + 30;
      await eventually('thirty more files', () => confirmed.size >= enough);
      const ended = once(server.process, 'exit');
      server.process.kill('SIGKILL');
      await ended;
      await Promise.all(clients);
    }

    const app = await openStore(THREE_HOURS);
    try {
      // What was half-written when the server died has not been touched for long by then.
      const long = new Date(Date.now() - THREE_HOURS);
      for (const path of await listStoredFiles(dir.path)) if (path.includes('incoming')) await utimes(path, long, long);
      await sweepUploads(app);
      const files = (await fileStore(app).find(filesOf(owner.project._id)).toArray()) as FileRecord[];
      const live = files.filter((file) => file.state === 'confirmed');
      const livePaths = new Set(live.map((file) => file.path));
      expect([...confirmed].filter((path) => !livePaths.has(path))).toEqual([]);
      expect([...deleted].filter((path) => livePaths.has(path))).toEqual([]);
      expect(files.filter((file) => file.state !== 'confirmed' && !file.settled)).toEqual([]);
      const stored = await listStoredFiles(dir.path);
      expect(stored.map((path) => path.split('/files/')[1]).sort()).toEqual([...livePaths].sort());
      const bytes = live.reduce((sum, file) => sum + file.size!, 0);
      expect((await measureStorage(app, owner.project)).bytes).toBe(bytes);
    } finally {
      await app.close();
    }
  });
});
