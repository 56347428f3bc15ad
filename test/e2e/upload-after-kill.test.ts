import { describe, expect, it } from 'vitest';
import { type App, migrate } from '../world/app.js';
import { sweepUploads } from '../world/jobs.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { startService } from '../helpers/run-binary.js';
import { listStoredFiles, openStorageClient, putSigned } from '../helpers/storage-client.js';
import { expectWholeFiles } from '../helpers/stored-files.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { withApp } from '../helpers/with-app.js';
import { use } from '../helpers/use.js';

const ROUNDS = 4;
const CLIENTS = 6;
const THREE_HOURS = 3 * 60 * 60 * 1000;

let owner: TestProject;

const dir = use(await openTempDir());
const env: Record<string, string> = { BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'silent' };
await withApp(env, async (app) => {
  await migrate(app.db);
  owner = await buildProject(app);
});

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

const listArriving = async (): Promise<string[]> =>
  (await listStoredFiles(dir.path)).filter((path) => path.includes('incoming'));

describe('uploads while the server is killed (kill -9)', { timeout: 240_000 }, () => {
  it('keep every answered file, bring back no deleted one, and leave the quota right once the sweep has come by', async () => {
    const confirmed = new Set<string>();
    const deleted = new Set<string>();
    for (let round = 0; round < ROUNDS; round++) {
      const server = await startService(['serve', '--port', '0', '--no-worker'], env);
      // What was half-written when the last one died is gone before anybody can ask for anything.
      expect(await listArriving()).toEqual([]);
      const clients = Array.from({ length: CLIENTS }, () => workUntilGone(server.ready.url, confirmed, deleted));
      const enough = confirmed.size + 30;
      await eventually('thirty more files', () => confirmed.size >= enough, 60_000);
      await server.stop('SIGKILL');
      await Promise.all(clients);
    }
    await withApp(env, (app) => expectConsistent(app, confirmed, deleted), THREE_HOURS);
    expect(await listArriving()).toEqual([]);
  });
});

async function expectConsistent(app: App, confirmed: ReadonlySet<string>, deleted: ReadonlySet<string>): Promise<void> {
  await sweepUploads(app);
  const live = await expectWholeFiles(app, dir.path, owner.project);
  const livePaths = new Set(live.map((file) => file.path));
  expect([...confirmed].filter((path) => !livePaths.has(path))).toEqual([]);
  expect([...deleted].filter((path) => livePaths.has(path))).toEqual([]);
}
