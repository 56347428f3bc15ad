import { ObjectId } from 'bson';
import { expect, it } from 'vitest';
import { type App, migrate } from '../world/app.js';
import { type Collection, parseFieldSpec } from '../world/collections.js';
import { drainJobs, sweepAttached, sweepUploads } from '../world/jobs.js';
import { buildCollection, buildProject, storedDocuments, type TestProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { startService } from '../helpers/run-binary.js';
import { listStoredFiles, putSigned } from '../helpers/storage-client.js';
import { expectWholeFiles } from '../helpers/stored-files.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { withApp } from '../helpers/with-app.js';
import { use } from '../helpers/use.js';

const ROUNDS = Number(process.env.BSVC_TEST_RUNS ?? 2);
const CLIENTS = 4;
const LATER_MS = 3 * 60 * 60 * 1000;

let owner: TestProject;
let cards: Collection;

const dir = use(await openTempDir());
const env: Record<string, string> = { BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'silent' };
await withApp(env, async (app) => {
  await migrate(app.db);
  owner = await buildProject(app);
  const fields = ['picture:String', 'plan:String'].map(parseFieldSpec);
  cards = await buildCollection(app, owner.project, { name: 'cards', fields });
});

/** What clients were answered. */
interface Known {
  /** The files of each card, which it names. */
  named: Map<string, string[]>;
  /** Cards that were removed for good. */
  removed: Set<string>;
}

class Gone extends Error {}

async function call(url: string, method: string, path: string, body?: FormData | object): Promise<Answer> {
  const isForm = body instanceof FormData;
  try {
    const reply = await fetch(`${url}/api/${path}`, {
      method,
      headers: { 'x-api-key': owner.secret, ...(body && !isForm && { 'content-type': 'application/json' }) },
      ...(body && { body: isForm ? body : JSON.stringify(body) }),
    });
    const answer = (await reply.json()) as Answer;
    expect(reply.status, JSON.stringify(answer)).toBeLessThan(300);
    return answer;
  } catch (error) {
    if (error instanceof TypeError || error instanceof SyntaxError) throw new Gone('killed', { cause: error });
    throw error;
  }
}

type Answer = Record<'path' | 'signedUrl' | 'filePath', string>;

/** Stores cards, uploads files to them, writes their paths into them, and removes some, until the server is gone. */
async function workUntilGone(url: string, { named, removed }: Known): Promise<void> {
  try {
    for (let at = 0; ; at++) {
      const id = new ObjectId().toHexString();
      const attach = { collection: 'cards', id };
      await call(url, 'POST', 'data/cards', { _id: id });
      const form = new FormData();
      form.set('attach', JSON.stringify(attach));
      form.set('file', new File([new Uint8Array(1000 + at)], 'a.png', { type: 'image/png' }));
      const { path: picture } = await call(url, 'POST', 'storage/upload', form);
      await call(url, 'PATCH', `data/cards/${id}`, { picture });
      named.set(id, [picture]);
      const wanted = { filename: 'b.png', contentType: 'image/png', size: 500, attach };
      const { signedUrl, filePath: plan } = await call(url, 'POST', 'storage/upload-request', wanted);
      await putSigned(signedUrl, new Uint8Array(500), 'image/png').catch((cause: unknown) => {
        throw new Gone('killed', { cause });
      });
      await call(url, 'POST', 'storage/upload-confirm', { filePath: plan, size: 500 });
      await call(url, 'PATCH', `data/cards/${id}`, { plan });
      named.set(id, [picture, plan]);
      if (at % 3 === 0) continue;
      // From here on it may be gone.
      named.delete(id);
      if (at % 3 === 1) await call(url, 'DELETE', `data/cards/${id}`);
      await call(url, 'DELETE', `data/cards/${id}?permanent=true`);
      removed.add(id);
    }
  } catch (error) {
    if (!(error instanceof Gone)) throw error;
  }
}

it('files of documents while the server is killed: none is missed, none is kept or counted for ever', async () => {
  const known: Known = { named: new Map(), removed: new Set() };
  for (let round = 0; round < ROUNDS; round++) {
    const server = await startService(['serve', '--port', '0'], env);
    // What was half-written when the last one died is gone before anybody can ask for anything.
    expect((await listStoredFiles(dir.path)).filter((path) => path.includes('incoming'))).toEqual([]);
    const clients = Promise.all(Array.from({ length: CLIENTS }, () => workUntilGone(server.ready.url, known)));
    const enough = known.removed.size + 10;
    // The sweep comes by while all this goes on.
    await withApp(env, (app) =>
      eventually('ten more are removed', async () => (await sweepAttached(app), known.removed.size >= enough)),
    );
    await server.stop('SIGKILL');
    await clients;
  }
  for (let at = 1; at <= 3; at++) {
    await withApp(
      env,
      async (app) => {
        await drainJobs(app);
        await sweepAttached(app);
        await sweepUploads(app);
      },
      at * LATER_MS,
    );
  }
  await withApp(env, (app) => expectConsistent(app, known));
});

async function expectConsistent(app: App, { named, removed }: Known): Promise<void> {
  const live = await expectWholeFiles(app, dir.path, owner.project);
  const paths = new Set(live.map(({ path }) => path));
  const stored = await storedDocuments(app, cards).find({}).toArray();
  const there = new Map(stored.map((card) => [card._id.toHexString(), card]));

  expect([...removed].filter((id) => there.has(id))).toEqual([]);
  expect([...named].filter(([id, some]) => !there.has(id) || some.some((path) => !paths.has(path)))).toEqual([]);
  const pointed = stored.flatMap(({ picture, plan }) => [picture, plan]).filter((path) => typeof path === 'string');
  expect(pointed.filter((path) => !paths.has(path))).toEqual([]);
  expect(live.filter(({ attachedTo }) => !there.has(attachedTo!.id.toHexString()))).toEqual([]);
  expect(live.length).toBeGreaterThan(0);
}
