import { setTimeout as wait } from 'node:timers/promises';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContext, type Locator, type Page, type Request } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { PACKAGE_ROOT } from '../world/app.js';
import { type Series, addOperator, startSeries } from '../world/operators.js';
import type { Project } from '../world/projects.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { CHROMIUM } from '../helpers/chromium.js';
import { openTestApp, type TestApp, type TestAppOptions } from '../helpers/open-test-app.js';

/** Of the page: what is evaluated there. */
declare const document: {
  documentElement: { scrollWidth: number; clientWidth: number };
  body: { innerText: string };
  activeElement: { textContent: string; getAttribute(name: string): string | null } | null;
  querySelector(selector: string): unknown;
};
declare const location: { hash: string };
declare function requestAnimationFrame(begin: () => void): void;
declare function addEventListener(type: string, listener: () => void, options: { once: boolean }): void;

export const PASSWORD = 'correct horse battery';
export const OWNER = 'ann@example.test';
export const VIEWER = 'vera@example.test';
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export interface ConsoleStage {
  test: TestApp;
  browser: Browser;
  project: Project;
  secret: string;
  /** Of the collection `posts`. */
  ids: string[];
  series: Series;
}

/** One server and one browser for a file of tests; fails every test whose page threw or broke the page's policy. */
export function useConsole(options: TestAppOptions = {}): ConsoleStage {
  const stage = {} as ConsoleStage;
  beforeAll(async () => {
    if (!existsSync(join(PACKAGE_ROOT, 'dist', 'console', 'index.html'))) throw new Error('run "npm run build" first');
    const settings = { BSVC_BCRYPT_COST: '4', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', ...options.settings };
    stage.test = await openTestApp({ ...options, settings });
    const { app } = stage.test;
    for (const [email, role] of [
      [OWNER, 'owner'],
      [VIEWER, 'viewer'],
    ] as const)
      await addOperator(app, { email, password: PASSWORD, role, projects: null });
    ({ project: stage.project, secret: stage.secret } = await buildProject(app, 'shop'));
    const posts = await buildCollection(app, stage.project, {
      name: 'posts',
      fields: [
        { name: 'title', type: 'String', required: true },
        { name: 'views', type: 'Number' },
      ],
      indexes: ['views'],
    });
    const documents = Array.from({ length: 120 }, (_, n) => ({ title: `Post ${n}`, views: n }));
    stage.ids = await placeDocuments(app, posts, documents);
    stage.series = startSeries(app);
    stage.browser = await chromium.launch({ executablePath: CHROMIUM!, args: ['--no-sandbox', '--disable-gpu'] });
  });
  afterAll(async () => {
    signedIn.clear();
    stage.series?.stop();
    await stage.browser?.close();
    await stage.test?.close();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.close()));
    await Promise.all([...signedIn.values()].map((context) => context.setOffline(false)));
    expect(faults.splice(0)).toEqual([]);
  });
  return stage;
}

/** What a test opened: closed behind it. */
const opened: { close(): Promise<void> }[] = [];
/** Browsers of those who have signed in, by who and how: kept for the next test, which then has the console loaded. */
const signedIn = new Map<string, BrowserContext>();
/** What pages threw, and what their policy kept them from. */
const faults: string[] = [];
/** What a page has asked for and not been answered yet. */
const underWay = new WeakMap<Page, Set<Request>>();

export interface Look {
  scheme?: 'light' | 'dark';
  width?: number;
}

/** A page with nobody signed in. */
export async function openPage(stage: ConsoleStage, look: Look = {}): Promise<Page> {
  const context = await openContext(stage, look);
  opened.push(context);
  return openPageIn(context);
}

function openContext({ browser, test }: ConsoleStage, { scheme, width }: Look): Promise<BrowserContext> {
  return browser.newContext({
    colorScheme: scheme ?? 'light',
    viewport: { width: width ?? 1280, height: 900 },
    baseURL: `${test.url}/console/`,
  });
}

async function openPageIn(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(45_000);
  page.on('pageerror', (error) => faults.push(`the page threw: ${error.message}`));
  page.on('console', (message) => {
    if (/Content Security Policy|TrustedHTML|Refused to|came closed/.test(message.text())) faults.push(message.text());
  });
  await page.addInitScript(watchDialogs);
  const requests = new Set<Request>();
  page.on('request', (request) => requests.add(request));
  page.on('requestfinished', (request) => requests.delete(request));
  page.on('requestfailed', (request) => requests.delete(request));
  underWay.set(page, requests);
  return page;
}

const LONGEST_SETTLING_MS = 20_000;

/**
 * Waits until the page has drawn what it was told, and nothing is asked for or loading any more. A page that goes on
 * longer is looked at as it is: each test says by itself what has to be there.
 */
export async function settle(page: Page): Promise<void> {
  const giveUp = new AbortController();
  const before = [...underWay.get(page)!];
  const settled = untilSettled(page, giveUp.signal);
  // Of a page that is closed after this gave up nobody needs to hear.
  settled.catch(() => undefined);
  const isLate = wait(LONGEST_SETTLING_MS, true, { signal: giveUp.signal }).catch(() => undefined);
  // The browser never tells the end of a request that the page gave up while a test held it: it is waited for once.
  if (await Promise.race([settled, isLate])) for (const request of before) underWay.get(page)!.delete(request);
  giveUp.abort();
}

async function untilSettled(page: Page, giveUp: AbortSignal): Promise<void> {
  const drawn = (): Promise<unknown> =>
    page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
  const isBusy = (): Promise<boolean> =>
    page.evaluate(
      () => Boolean(document.querySelector('[aria-busy="true"]')) || document.body.innerText.includes('Loading…'),
    );
  do await drawn();
  while (!giveUp.aborted && (underWay.get(page)!.size > 0 || (await isBusy())));
  await drawn();
}

/** Runs in the page: a dialog that is there before it is open misses an Esc pressed meanwhile. */
function watchDialogs(): void {
  interface Found {
    localName?: string;
    open?: boolean;
    querySelectorAll?(selector: string): Iterable<Found>;
  }
  type Observer = new (see: (records: { addedNodes: Iterable<Found> }[]) => void) => {
    observe(target: unknown, options: object): void;
  };
  const { MutationObserver, document, console } = globalThis as unknown as {
    MutationObserver: Observer;
    document: unknown;
    console: { error(text: string): void };
  };
  new MutationObserver((records) => {
    for (const { addedNodes } of records) {
      for (const added of addedNodes) {
        for (const each of [added, ...(added.querySelectorAll?.('dialog') ?? [])]) {
          if (each.localName === 'dialog' && each.open !== true) console.error('a dialog came closed');
        }
      }
    }
  }).observe(document, { childList: true, subtree: true });
}

/** A page of somebody who has signed in, at the form unless a test before has. */
export async function openConsole(
  stage: ConsoleStage,
  { email = OWNER, hash = '#/', ...look }: Look & { email?: string; hash?: string } = {},
): Promise<Page> {
  const key = JSON.stringify([email, look]);
  const context = signedIn.get(key) ?? (await openContext(stage, look));
  signedIn.set(key, context);
  const page = await openPageIn(context);
  opened.push(page);
  await page.goto(`./${hash}`);
  // The page may begin before the server has said who it is.
  const known = page.getByRole('banner').getByText(email);
  await known.or(page.getByLabel('Password')).first().waitFor();
  if (!(await known.isVisible())) await signIn(page, email);
  await known.waitFor();
  return page;
}

export async function signIn(page: Page, email = OWNER, password = PASSWORD): Promise<void> {
  await page.getByLabel('Email', { exact: true }).fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Waits for what comes of an act, and gives the own password where the page asks for it before. */
export async function reach(page: Page, found: Locator): Promise<void> {
  const asked = page.getByRole('textbox', { name: 'Your password' });
  await found.or(asked).first().waitFor();
  if (await found.first().isVisible()) return;
  await asked.fill(PASSWORD);
  await page.getByRole('button', { name: 'Continue' }).click();
  await found.waitFor();
}

/** The address of a screen of the stage's project. */
export const at = ({ project }: ConsoleStage, rest: string): string => `#/p/${project._id.toHexString()}/${rest}`;

/** Goes to a screen without loading the page anew, and waits until the page has begun with it. */
export async function visit(page: Page, hash: string): Promise<void> {
  await page.evaluate(
    (next) =>
      new Promise<void>((resolve) => {
        if (location.hash === next) return resolve();
        addEventListener('hashchange', () => setTimeout(resolve), { once: true });
        location.hash = next;
      }),
    hash,
  );
}

/** What axe finds against the page as it is now, by rule and place. */
export async function findBarriers(page: Page): Promise<string[]> {
  // Past the page's policy, which stays on: the debugging port evaluates it.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(options: {
          resultTypes: string[];
        }): Promise<{ violations: { id: string; nodes: { target: unknown[]; failureSummary?: string }[] }[] }>;
      };
    };
    const { violations } = await axe.run({ resultTypes: ['violations'] });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} at ${target.join(' ')}: ${failureSummary ?? ''}`),
    );
  });
}

/** Pixels that the page is wider than its window. */
export function measureOverflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}
