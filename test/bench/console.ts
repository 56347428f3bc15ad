import { join } from 'node:path';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { chromium, type Page } from 'playwright-core';
import { CHROMIUM } from '../helpers/chromium.js';
import { runBinary } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { service } from './http-servers.js';

/*
 * What an operator waits for at the console, in Chromium on this machine: medians, beside the goals of its design.
 *
 *   npm run bench console                       a collection of a million documents
 *   npm run bench console -- --documents 20000
 */

/** Of the page: what is evaluated there. */
declare const location: { hash: string };

const { values: options } = parseArgs({ options: { documents: { type: 'string', default: '1000000' } } });
const ROUNDS = 7;
/** As many as an hour of the overview has, of each of its two requests. */
const REFRESHES = 360;
const OVERVIEW_MS = 10_000;

/**
 * Texts of the page's own script, as no loader has touched them: goes to an address, and answers the milliseconds until
 * what is asked for has been painted.
 */
const GO = `async (address, isThere) => {
  const frame = () => new Promise(requestAnimationFrame);
  const started = performance.now();
  location.hash = address;
  // The change of the address is answered in a task of its own.
  await new Promise((resolve) => addEventListener('hashchange', () => setTimeout(resolve), { once: true }));
  do await frame(); while (!isThere());
  await frame();
  return performance.now() - started;
}`;
const NEXT_PAGE = `[...document.querySelectorAll('a')].find(({ textContent }) => /Next page/.test(textContent)).hash`;
const SHOWS_ROWS = `() => !document.querySelector('[aria-busy="true"]') && document.querySelector('tbody tr')`;
const FIRST_PAINT = `performance.getEntriesByName('first-contentful-paint')[0].startTime`;
const SHOWS_EDITOR = `() => document.querySelector('.editor-host')?.shadowRoot?.querySelector('.cm-line')`;

const folder = await openTempDir();
const browser = await chromium.launch({
  executablePath: CHROMIUM!,
  args: ['--no-sandbox', '--disable-gpu'],
});
const server = await (await service(folder.path, Number(options.documents))).start();
try {
  console.log(`load ${loadavg()[0]!.toFixed(1)}, ${options.documents} documents; goals in parentheses`);
  const env = { PATH: process.env.PATH!, BSVC_DATA_DIR: join(folder.path, 'data'), BSVC_PROJECT: 'bench' };
  const bsvc = async (argv: string[], stdin = ''): Promise<string> => {
    const { code, stdout, stderr } = await runBinary(argv, { env, stdin });
    if (code !== 0) throw new Error(stderr);
    return stdout.trim();
  };
  await bsvc(['operator', 'add', '--email', 'ann@example.com', '--password-stdin'], 'long enough');
  const large = JSON.stringify({ title: 'x', group: 1, views: 1, body: 'y'.repeat(1_000_000) });
  await bsvc(['collection', 'add', 'large', '--flexible']);
  const id = await bsvc(['data', 'insert', 'large', '-', '--quiet'], large);
  const { id: project } = JSON.parse(await bsvc(['project', 'show', 'bench', '--json'])) as { id: string };
  const link = await bsvc(['console', '--no-open', '--quiet', '--url', server.url]);

  const painted: number[] = [];
  await measure('sign-in form usable', 800, async () => {
    const page = await (await browser.newContext()).newPage();
    const ms = await timed(async () => {
      await page.goto(`${server.url}/console/`);
      await page.getByLabel('E-mail').fill('a');
    });
    painted.push(await page.evaluate<number>(FIRST_PAINT));
    await page.context().close();
    return ms;
  });
  console.log(`  painted ${median(painted).toFixed(0)} ms after its address was entered (500)`);

  const page = await (await browser.newContext()).newPage();
  await page.goto(link);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  const posts = `#/p/${project}/documents/posts`;
  await visit(page, posts);
  await page.getByText('50 shown').waitFor();
  const busy = await watchTasks(page);
  await measure('the next page of documents', 150, () => page.evaluate<number>(`(${GO})(${NEXT_PAGE}, ${SHOWS_ROWS})`));
  const { TaskDuration, ScriptDuration, LayoutDuration, RecalcStyleDuration } = await busy();
  const parts = `script ${ScriptDuration}, layout ${LayoutDuration}, style ${RecalcStyleDuration}`;
  console.log(`  of it the page's main thread is busy for ${TaskDuration} ms: ${parts}`);
  let group = 0;
  await measure('a filter by index', 150, () =>
    page.evaluate<number>(`(${GO})('${posts}?group=${++group}', ${SHOWS_ROWS})`),
  );
  await measure('a document of 1 MB, until it can be edited', 1_000, async () => {
    await visit(page, posts);
    await page.getByText('50 shown').waitFor();
    return page.evaluate<number>(`(${GO})('#/p/${project}/documents/large?open=${id}', ${SHOWS_EDITOR})`);
  });

  const overview = await page.context().newPage();
  // An hour of its timer at once.
  await overview.clock.install();
  await overview.goto(`${server.url}/console/#/`);
  await overview.getByRole('heading', { name: 'Overview' }).waitFor();
  for (let n = 0; n < REFRESHES; n++) {
    const answered = overview.waitForResponse(/admin\/series/);
    await overview.clock.runFor(OVERVIEW_MS + 100);
    await answered;
  }
  const session = await overview.context().newCDPSession(overview);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  console.log(`heap after ${REFRESHES} refreshes of the overview: ${(usedSize / 2 ** 20).toFixed(1)} MiB (50)`);
} finally {
  await browser.close();
  await server.stop();
  await folder.remove();
}

async function measure(name: string, goalMs: number, once: () => Promise<number>): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) times.push(await once());
  console.log(`${name}: ${median(times).toFixed(0)} ms (${goalMs}), at most ${Math.max(...times).toFixed(0)}`);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

type Task = 'TaskDuration' | 'ScriptDuration' | 'LayoutDuration' | 'RecalcStyleDuration';

/** Watches what the page's main thread does from now on: milliseconds of a round. */
async function watchTasks(page: Page): Promise<() => Promise<Record<Task, string>>> {
  const session = await page.context().newCDPSession(page);
  // Time of the processor: others may want it as well.
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const read = async (): Promise<Record<string, number>> =>
    Object.fromEntries((await session.send('Performance.getMetrics')).metrics.map(({ name, value }) => [name, value]));
  const before = await read();
  return async () => {
    const after = await read();
    const of = (name: Task): string => (((after[name]! - before[name]!) * 1000) / ROUNDS).toFixed(1);
    return {
      TaskDuration: of('TaskDuration'),
      ScriptDuration: of('ScriptDuration'),
      LayoutDuration: of('LayoutDuration'),
      RecalcStyleDuration: of('RecalcStyleDuration'),
    };
  };
}

async function timed(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function visit(page: Page, hash: string): Promise<void> {
  await page.evaluate((next) => void (location.hash = next), hash);
}
