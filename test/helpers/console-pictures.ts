import { existsSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { createApi } from '../../src/api.js';
import { openApp, type App } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import { keepBackup, openConfiguredPlace } from '../../src/features/backups/keep-backup.js';
import { setChanges } from '../../src/features/changes/set-changes.js';
import { setTemplate } from '../../src/features/mail/mail-template.js';
import { addOperator } from '../../src/features/operators/manage-operators.js';
import type { Project } from '../../src/features/projects/project.js';
import { startSeries } from '../../src/features/series/series.js';
import { signUp } from '../../src/features/users/sign-up.js';
import { addWebhook } from '../../src/features/webhooks/add-webhook.js';
import { migrate } from '../../src/migrations/migrate.js';
import { PACKAGE_ROOT } from '../../src/package.js';
import { openLogger } from '../../src/platform/observe/logger.js';
import { systemClock } from '../../src/platform/time/clock.js';
import { buildCollection, buildProject, placeDocuments } from './build-project.js';
import { CHROMIUM } from './chromium.js';
import { listen } from './listen.js';
import { openStorageClient } from './storage-client.js';
import { openTempDir } from './temp-dir.js';

const EMAIL = 'ann@example.com';
const PASSWORD = 'correct horse battery';
const DAY_MS = 86_400_000;
const AUTHORS = ['Ada Brandt', 'Bo Lindqvist', 'Chiara Ruiz', 'Dalia Haddad', 'Emre Yıldız'];
const TITLES = [
  'A quieter kind of search',
  'What the index knew',
  'Ten small tools',
  'Notes on a slow release',
  'Why the tests were red',
  'A table of everything',
  'On names',
  'Letters from the archive',
  'The last migration',
  'دليل القراءة السريعة',
];
const TOPICS = ['data', 'tools', 'people', 'history', 'craft'];

const PIPELINE = `[
  { "$match": { "status": "live" } },
  { "$group": { "_id": "$author", "stories": { "$sum": 1 }, "readers": { "$sum": "$readers" } } },
  { "$sort": { "readers": -1 } }
]`;

/** A GIF of one pixel: what a preview shows of an image. */
const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs=', 'base64');

/**
 * Takes pictures of the console's screens with a small shop of stories in it, each in two themes and two widths, into
 * `folder`, and the one of the README into `readme`. Needs a build and a Chromium.
 */
export async function takePictures(folder: string, readme: string): Promise<number> {
  if (CHROMIUM === null) throw new Error('pictures need a Chromium: apt-get install chromium');
  if (!existsSync(join(PACKAGE_ROOT, 'dist', 'console', 'index.html'))) throw new Error('run "npm run build" first');
  mkdirSync(folder, { recursive: true });
  const { app, url, close } = await openServer();
  const series = startSeries(app);
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  try {
    await addOperator(app, { email: EMAIL, password: PASSWORD, role: 'owner', projects: null });
    const { project, secret } = await buildProject(app, 'stories');
    const { stories, user } = await fill(app, project);
    const files = openStorageClient({ url }, secret);
    const cover = await files.upload(PIXEL, 'cover.gif', 'image/gif');
    await files.upload('a,b\n1,2\n', 'orders 2026.csv', 'text/csv');
    await change({ url, secret }, stories.at(-3)!);
    await backUpOnce(app);
    const screens = listScreens(`#/p/${project._id.toHexString()}/`, { stories, user, file: cover.body.path });
    for (const scheme of ['light', 'dark'] as const) {
      const context = await browser.newContext({ colorScheme: scheme, baseURL: `${url}/console/` });
      const page = await context.newPage();
      await page.goto('./');
      await page.getByLabel('Email', { exact: true }).fill(EMAIL);
      await page.getByLabel('Password').fill(PASSWORD);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('banner').getByText(EMAIL).waitFor();
      for (const width of [1280, 400]) {
        await page.setViewportSize({ width, height: 860 });
        for (const [name, hash] of screens) {
          await showScreen(page, hash);
          await page.screenshot({ path: join(folder, `${name}-${scheme}-${width}.png`) });
        }
      }
      if (scheme === 'light') {
        await page.setViewportSize({ width: 1280, height: 720 });
        await showScreen(page, screens.find(([name]) => name === 'documents-filtered')![1]);
        await page.screenshot({ path: readme });
      }
      await context.close();
    }
    return screens.length * 4;
  } finally {
    series.stop();
    await browser.close();
    await close();
  }
}

/** A server on an empty folder, without what tests look for in its replies. */
async function openServer(): Promise<{ app: App; url: string; close(): Promise<void> }> {
  const { path: dataDir, remove } = await openTempDir();
  const values = {
    BSVC_DATA_DIR: dataDir,
    BSVC_DURABILITY: 'relaxed',
    BSVC_RATE_LIMIT: 'off',
    BSVC_BCRYPT_COST: '4',
    BSVC_MAIL_FROM: 'stories@example.com',
    BSVC_BACKUP_TO: join(dataDir, 'kept'),
  };
  const { config } = loadConfig([{ source: 'pictures', values }]);
  const app = await openApp(config, openLogger({ level: 'warn', format: 'json' }, process.stderr), systemClock);
  await migrate(app.db);
  const server = await listen(createServer(createApi(app).callback()));
  return {
    app,
    url: server.url,
    async close() {
      await server.close();
      await app.close();
      await remove();
    },
  };
}

async function showScreen(page: Page, hash: string): Promise<void> {
  await page.goto(`./${hash}`);
  await page.reload();
  await page.getByRole('heading').first().waitFor();
  // Pages that follow something never rest.
  await page.waitForLoadState(hash.includes('requests') ? 'load' : 'networkidle');
}

/** Stories with their authors, users, a webhook and a template: ids of the stories, and of a user. */
async function fill(app: App, project: Project): Promise<{ stories: string[]; user: string }> {
  const authors = await buildCollection(app, project, {
    name: 'authors',
    fields: [
      { name: 'name', type: 'String', required: true },
      { name: 'since', type: 'Date' },
    ],
  });
  const start = app.clock.now() - 90 * DAY_MS;
  const names = await placeDocuments(
    app,
    authors,
    AUTHORS.map((name, n) => ({ name, since: new Date(start + n * DAY_MS) })),
    start,
  );
  const posts = await buildCollection(app, project, {
    name: 'stories',
    fields: [
      { name: 'title', type: 'String', required: true, maxLength: 120 },
      { name: 'status', type: 'String', enum: ['draft', 'review', 'live'], required: true },
      { name: 'author', type: 'Ref', ref: 'authors' },
      { name: 'readers', type: 'Number', min: 0 },
      { name: 'topics', type: 'Array', items: { type: 'String' } },
      { name: 'featured', type: 'Boolean' },
      { name: 'publishedAt', type: 'Date' },
      { name: 'text', type: 'String' },
    ],
    indexes: ['readers', 'status'],
  });
  const documents = Array.from({ length: 240 }, (_, n) => ({
    title: `${TITLES[n % TITLES.length]!}${n < TITLES.length ? '' : `, part ${Math.floor(n / TITLES.length) + 1}`}`,
    status: ['live', 'live', 'draft', 'review'][n % 4],
    author: names[n % names.length],
    readers: (n * 7919) % 12_000,
    topics: TOPICS.slice(n % 3, (n % 3) + 2),
    featured: n % 5 === 0,
    publishedAt: new Date(start + n * 8 * 3_600_000),
    text: 'The index had been there all along; nobody had asked it anything.',
    ...(n % 40 === 9 && { isDeleted: true, deletedAt: new Date(start + n * DAY_MS) }),
  }));
  const stories = await placeDocuments(app, posts, documents, start);
  await setChanges(app, project._id, posts.name, { on: true });
  const users = [];
  for (const email of ['ada@example.com', 'bo@example.com', 'chiara@example.com']) {
    users.push(await signUp(app, project, { email, password: 'long enough' }, 'project'));
  }
  await addWebhook(app, project, { url: 'https://hooks.example.com/stories', events: ['stories.insert'] });
  await setTemplate(app, project, 'welcome', { subject: 'Welcome, {{name}}', text: 'Hello {{name}}' });
  return { stories, user: users[0]!._id.toHexString() };
}

/** Changes a story a few times, which its history shows. */
async function change({ url, secret }: { url: string; secret: string }, id: string): Promise<void> {
  for (const fields of [
    { status: 'review' },
    { status: 'live', readers: 812 },
    { featured: true, topics: ['craft'] },
  ]) {
    await fetch(`${url}/api/data/stories/${id}`, {
      method: 'PATCH',
      headers: { 'x-api-key': secret, 'content-type': 'application/json' },
      body: JSON.stringify(fields),
    });
  }
}

async function backUpOnce(app: App): Promise<void> {
  const place = await openConfiguredPlace(app);
  const options = { stop: new AbortController().signal, onProgress: () => undefined };
  await keepBackup(app, place!, app.config.backupKeep, options);
}

/** Every screen with its address, and what opens over it. */
function listScreens(
  at: string,
  { stories, user, file }: { stories: readonly string[]; user: string; file: string },
): (readonly [name: string, hash: string])[] {
  return [
    ['overview', '#/'],
    ['documents', `${at}documents/stories`],
    ['documents-filtered', `${at}documents/stories?status=live&readers_gte=5000&sort=-readers`],
    ['trash', `${at}documents/stories?trash=1`],
    ['record', `${at}documents/stories?open=${stories.at(-3)!}`],
    ['record-json', `${at}documents/stories?open=${stories.at(-3)!}&tab=json`],
    ['record-history', `${at}documents/stories?open=${stories.at(-3)!}&tab=history`],
    ['record-references', `${at}documents/stories?open=${stories.at(-3)!}&tab=references`],
    ['record-access', `${at}documents/stories?open=${stories.at(-3)!}&tab=access`],
    ['new-document', `${at}documents/stories?open=new`],
    ['import', `${at}documents/stories?import=1`],
    ['collections', `${at}collections`],
    ['collection', `${at}collections?open=stories`],
    ['collection-edit', `${at}collections?open=stories&edit=1`],
    ['rules', `${at}collections?open=stories&rules=1`],
    ['query', `${at}query?of=stories&q=${encodeURIComponent('status=live\nreaders_gte=5000\nsort=-readers')}`],
    ['pipeline', `${at}query?of=stories&as=pipeline&q=${encodeURIComponent(PIPELINE)}`],
    ['files', `${at}files`],
    ['file', `${at}files?open=${encodeURIComponent(file)}`],
    ['users', `${at}users`],
    ['user', `${at}users?open=${user}`],
    ['sign-in', `${at}sign-in`],
    ['operators', '#/operators'],
    ['requests', '#/requests?live=off'],
    ['webhooks', `${at}webhooks`],
    ['webhook-new', `${at}webhooks?edit=new`],
    ['mail', `${at}mail`],
    ['jobs', '#/jobs'],
    ['audit', '#/audit'],
    ['keys', `${at}keys`],
    ['storage', `${at}storage`],
    ['project', `${at}settings`],
    ['backups', '#/backups'],
    ['server', '#/server'],
    ['account', '#/account'],
  ];
}
