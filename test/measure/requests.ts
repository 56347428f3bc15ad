import { createServer } from 'node:http';
import { Session } from 'node:inspector/promises';
import { createApi } from '../../src/api.js';
import { type App, openApp } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import { addWebhook } from '../../src/features/webhooks/add-webhook.js';
import { migrate } from '../../src/migrations/migrate.js';
import { openLogger } from '../../src/platform/observe/logger.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { listen } from '../helpers/listen.js';
import { openTempDir } from '../helpers/temp-dir.js';

const WARM_UPS = 5;
/** Answers that a service gives after the reply belong to the request too. */
const AFTERWARDS_MS = 300;
const SOURCE = '/src/';

export interface Ran {
  request: string;
  files: number;
  functions: number;
}

type Send = (method: string, path: string, body?: object, by?: Record<string, string>) => Promise<Answer>;
interface Answer {
  status: number;
  body: Record<string, unknown>;
}

/**
 * Files and functions of `src` that run for one request each, by V8's precise coverage, after five of the same: what
 * somebody reads who wants to know what the request does. What runs beside it in a service is among them.
 */
export async function countRan(): Promise<Ran[]> {
  const dir = await openTempDir();
  const values = {
    BSVC_DATA_DIR: dir.path,
    BSVC_DURABILITY: 'relaxed',
    BSVC_RATE_LIMIT: '1000000/15m',
    BSVC_AUTH_RATE_LIMIT: '1000000/15m',
    BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
  };
  const { config } = loadConfig([{ source: 'measure', values }], { readerThreads: 0 });
  const app = await openApp(config, openLogger({ level: 'info', format: 'json' }, { write: () => undefined }));
  await migrate(app.db);
  const server = createServer(createApi(app).callback());
  const { url, close } = await listen(server);
  const session = new Session();
  try {
    const requests = await prepare(app, url);
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    const ran: Ran[] = [];
    for (const [request, send] of Object.entries(requests)) ran.push({ request, ...(await watch(session, send)) });
    return ran;
  } finally {
    session.disconnect();
    await close();
    await app.close();
    await dir.remove();
  }
}

async function watch(session: Session, send: () => Promise<Answer>): Promise<Omit<Ran, 'request'>> {
  const once = async (): Promise<void> => {
    const { status, body } = await send();
    if (status >= 300) throw new Error(`answered with ${status}: ${JSON.stringify(body)}`);
    await new Promise((resolve) => setTimeout(resolve, AFTERWARDS_MS));
  };
  for (let n = 0; n < WARM_UPS; n++) await once();
  await session.post('Profiler.takePreciseCoverage');
  await once();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const ran = result
    .filter(({ url }) => url.includes(SOURCE))
    .map(({ functions }) => functions.filter(({ functionName, ranges }) => functionName !== '' && ranges[0]!.count > 0))
    .filter((functions) => functions.length > 0);
  return { files: ran.length, functions: ran.reduce((sum, { length }) => sum + length, 0) };
}

/** A board's members write its cards: rules that name a set, references, a webhook. */
async function prepare(app: App, url: string): Promise<Record<string, () => Promise<Answer>>> {
  const { project, publishable, secret } = await buildProject(app);
  const byKey = { 'x-api-key': secret };
  const byApp = { 'x-api-key': publishable };
  const send: Send = async (method, path, body, by = byKey) => {
    const headers = { 'content-type': 'application/json', ...by };
    const reply = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return { status: reply.status, body: (await reply.json()) as Answer['body'] };
  };
  const title = { name: 'title', type: 'String', required: true } as const;
  const board = { name: 'board', type: 'Ref', ref: 'boards', required: true } as const;
  const user = { name: 'user', type: 'Ref', ref: 'users', required: true } as const;
  const isMember = 'doc.board in members[user = user.id].board';
  await buildCollection(app, project, { name: 'boards', fields: [title] });
  await buildCollection(app, project, { name: 'members', fields: [board, user] });
  await buildCollection(app, project, { name: 'notes', fields: [title, { name: 'n', type: 'Number' }] });
  await buildCollection(app, project, {
    name: 'cards',
    fields: [
      title,
      { ...board, check: true },
      { name: 'n', type: 'Number', min: 0, max: 100 },
      { name: 'tags', type: 'Array', items: { type: 'String' }, maxItems: 5 },
    ],
    rules: { read: isMember, create: isMember, update: isMember, delete: isMember },
  });
  // Nobody listens there: events are stored and relayed all the same.
  await addWebhook(app, project, { url: 'http://127.0.0.1:9/', events: ['cards.*'] });
  const person = { email: 'ada@example.com', password: 'correct horse battery' };
  const { body: signed } = await send('POST', '/api/userAuth/signup', person, byApp);
  const { _id: userId } = signed.user as { _id: string };
  const asMember = { ...byApp, authorization: `Bearer ${String(signed.accessToken)}` };
  const { body: made } = await send('POST', '/api/data/boards', { title: 'board' });
  const boardId = String(made._id);
  await send('POST', '/api/data/members', { board: boardId, user: userId });
  const card = { board: boardId, title: 'card', n: 1, tags: [] };
  const { body: stored } = await send('POST', '/api/data/cards', card, asMember);
  const { body: note } = await send('POST', '/api/data/notes', { title: 'note', n: 1 });
  const change = { $inc: { n: 1 }, $addToSet: { tags: 'a' } };
  let people = 0;
  return {
    'list, secret key': () => send('GET', '/api/data/notes?n_gte=0&limit=20'),
    'get, secret key': () => send('GET', `/api/data/notes/${String(note._id)}`),
    'insert under rules': () => send('POST', '/api/data/cards', card, asMember),
    'PATCH of a member': () => send('PATCH', `/api/data/cards/${String(stored._id)}`, change, asMember),
    login: () => send('POST', '/api/userAuth/login', person, byApp),
    'sign-up': () => send('POST', '/api/userAuth/signup', { ...person, email: `p${++people}@example.com` }, byApp),
  };
}
