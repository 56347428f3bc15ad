import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM, drivePage, type DrivenPage } from '../helpers/chromium.js';
import { eventually } from '../helpers/eventually.js';
import { missingLines, readExamples, type Example } from '../helpers/guide-examples.js';
import { findFreePort, listen } from '../helpers/listen.js';
import { runShell, type ShellOutcome } from '../helpers/run-shell.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

// A newcomer's first fifteen minutes, in the order of README.md: a clone of what is committed, its two commands, the
// page that they lead to, the tour, and the guide that the tour ends with. What is run and
// opened is the text of the clone's README and guides; only ports are others, and what `npm ci` and the build make is
// taken from this checkout.
const ROOT = join(import.meta.dirname, '../..');

let served = '';
let page: DrivenPage | undefined;

const moved = (text: string): string => text.replace(/\b(?:4000|5173|9000)\b/g, (port) => ports.get(port)!);
const readGuide = (name: string): Example[] =>
  readExamples(readFileSync(join(clone, 'templates/docs', `${name}.md`), 'utf8'));
const readTour = (): Example[] => readExamples(/<!-- tour -->([\s\S]*?)<!-- \/tour -->/.exec(readme)![1]!);

const dir = use(await openTempDir());
const clone = join(dir.path, 'bsvc');
const home = join(dir.path, 'home');
mkdirSync(join(home, '.local/bin'), { recursive: true });
// The checkout may belong to somebody else, as in a container.
writeFileSync(join(home, '.gitconfig'), '[safe]\n  directory = *\n');
const env: Record<string, string> = {
  HOME: home,
  PATH: `${join(home, '.local/bin')}:${process.env.PATH}`,
  npm_config_prefix: join(dir.path, 'prefix'),
};
execFileSync('git', ['clone', '--quiet', ROOT, clone], { env, stdio: 'pipe' });
const readme = readFileSync(join(clone, 'README.md'), 'utf8');
takeInstalled();
const server = createServer((request, response) => {
  response.setHeader('content-type', 'text/html');
  response.end(request.url === '/' ? served : '');
});
const site = use(await listen(server));
const ports: Map<string, string> = new Map([
  ['4000', `${await findFreePort()}`],
  ['5173', new URL(site.url).port],
  ['9000', `${await findFreePort()}`],
]);
afterAll(async () => {
  await page?.close();
});

/** Puts what install.sh would make where it looks for it: packages as links, the build as a copy. */
function takeInstalled(): void {
  cpSync(join(ROOT, 'dist'), join(clone, 'dist'), { recursive: true });
  const packages = join(ROOT, 'node_modules');
  mkdirSync(join(clone, 'node_modules'));
  for (const name of readdirSync(packages).filter((each) => each !== '.installed-by-bsvc')) {
    symlinkSync(join(packages, name), join(clone, 'node_modules', name));
  }
  const [sum, bytes] = execFileSync('cksum', { input: readFileSync(join(clone, 'package-lock.json')) })
    .toString()
    .split(/\s/);
  const [major] = process.versions.node.split('.');
  writeFileSync(join(clone, 'node_modules/.installed-by-bsvc'), `${sum} ${bytes} node ${major}\n`);
}

/** Runs a text as if typed into a shell in the clone: -m gives it the job numbers of an interactive one. */
function paste(text: string, words: string[] = []): Promise<ShellOutcome> {
  const careful = `trap 'kill $(jobs -p) 2>/dev/null || true' EXIT; trap 'exit 1' TERM\n${text}`;
  return runShell(clone, ['-m', ...words, '-o', 'pipefail', '-c', careful], env, 280_000);
}

/** Pastes the examples one after the other; what is shown behind each is printed, and the last command succeeds. */
async function follow(examples: Example[]): Promise<string> {
  const { code, output } = await paste(moved(examples.map(({ text }) => text).join('\n')));
  for (const { shown } of examples) expect([missingLines(moved(shown ?? ''), output), output]).toEqual([[], output]);
  expect({ code, output }).toEqual({ code: 0, output });
  return output;
}

async function open(url: string): Promise<DrivenPage> {
  if (page) await page.visit(url);
  else page = await drivePage(url);
  await page.until(`location.href === ${JSON.stringify(url)} && document.readyState === 'complete'`);
  return page;
}

describe('the first fifteen minutes with bsvc', () => {
  describe('./install.sh --run in a fresh clone', () => {
    let running: ChildProcess;
    let printed = '';
    beforeAll(async () => {
      const [command] = readExamples(readme);
      expect(command!.text).toBe('./install.sh --run\n');
      running = spawn('bash', ['-c', `exec ${command!.text.trim()} --port ${ports.get('4000')}`], { cwd: clone, env });
      for (const stream of [running.stdout!, running.stderr!]) {
        stream.setEncoding('utf8').on('data', (text: string) => (printed += text));
      }
      await eventually('the demo says what to try', () => /^ {2}curl .*$/m.test(printed));
    });
    afterAll(async () => {
      const ended = once(running, 'close');
      running.kill('SIGINT');
      expect(await ended).toEqual([0, null]);
    });

    it('links bsvc, and prints a line to try that answers', async () => {
      const link = join(env.HOME!, '.local/bin/bsvc');
      expect(printed).toContain(`is installed: ${link}`);
      expect(lstatSync(link).isSymbolicLink()).toBe(true);
      const { output } = await paste(/^ {2}(curl .*)$/m.exec(printed)![1]!);
      expect(output).toMatch(/\{"success":true,"data":\{"items":\[\{"_id":"[0-9a-f]{24}","title":"/);
    });

    it.skipIf(!CHROMIUM)('leads to a page of every operation, where the demo’s keys try them', async () => {
      expect(readme).toContain('open `http://localhost:4000/api/docs`');
      expect(printed).toContain(moved('http://localhost:4000/api/docs'));
      const docs = await open(moved('http://localhost:4000/api/docs#insertDocument'));
      await docs.until(`document.querySelector('form.search[role="search"]')`);
      // The operation that the address names is open, and no other.
      await docs.until(`document.querySelector('details.operation[open]')?.id === 'insertDocument'`);
      expect(await docs.evaluate(`document.querySelectorAll('details.operation[open]').length`)).toBe(1);
      // To be seen without scrolling far.
      const top = (selector: string): string => `document.querySelector('${selector}').getBoundingClientRect().top`;
      await docs.until(`document.querySelector('#insertDocument .try button')`);
      expect(await docs.evaluate(`${top('#insertDocument .try button')} - ${top('#insertDocument')}`)).toBeLessThan(
        500,
      );
      const tried = await tryOperations(docs, /secret key +(sk_live_\S+)/.exec(printed)![1]!);
      expect(tried.inserted).toMatch(/^201 Created · \d+ ms\n\{\n {2}"_id": "[0-9a-f]{24}",\n {2}"title": "Tried"/);
      expect(tried.listed).toMatch(/^200 OK[\s\S]*"title": "Tried"[\s\S]*"total": 1/);
      expect(tried.refused).toMatch(/^400 Bad Request[\s\S]*"code": "INVALID_QUERY"/);
      await docs.evaluate(`document.querySelector('.intro a[href$="/first-app"]').click()`);
      await docs.until(`document.querySelector('main.guide h1')?.textContent === 'Your first app'`);
    });
  });

  it('the README’s tour does what it says, pasted as a whole', async () => {
    expect(await follow(readTour())).toMatch(/_id,text,photo,userId,/);
    expect(readme).toContain('](templates/docs/first-app.md)');
  });

  describe.skipIf(!CHROMIUM)('the page of the guide Your first app', () => {
    let shell: Promise<ShellOutcome>;
    let receiver: Example;
    const printed = (): string => readFileSync(join(clone, 'printed.log'), 'utf8');
    beforeAll(async () => {
      const examples = readGuide('first-app');
      receiver = examples.find(({ text }) => text.startsWith('node receiver.mjs'))!;
      writeFileSync(join(clone, 'printed.log'), '');
      writeFileSync(
        join(clone, 'receiver.mjs'),
        moved(readGuide('webhooks').find(({ file }) => file === 'receiver.mjs')!.text),
      );
      const [start, project] = examples.filter(({ language }) => language === 'sh');
      const shared = examples.find(({ text }) => text.includes('collection rls shopping'));
      shell = paste(
        `exec > printed.log 2>&1
${moved(start!.text)}
${moved(project!.text)}
${shared!.text}
${receiver.text.trim()} &
until [ -e done ]; do sleep 0.2; done
kill $(jobs -p); wait`,
        ['-e'],
      );
      const key = await eventually('the key is printed', () => /^pk_live_\S+$/m.exec(printed())?.[0]);
      served = moved(examples.find(({ file }) => file === 'index.html')!.text).replace('pk_live_…', key);
      await open(moved('http://localhost:5173/'));
    });
    afterAll(async () => {
      writeFileSync(join(clone, 'done'), '');
      await shell;
    });

    it('signs up, keeps a private note with a photo, is signed in after a reload, and its webhook arrives', async () => {
      await enter(page!, 'signup', 'ada@example.com');
      await page!.evaluate(`(async () => {
        const canvas = Object.assign(document.createElement('canvas'), { width: 37, height: 11 });
        canvas.getContext('2d').fillRect(0, 0, 20, 10);
        const picture = await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
        const chosen = new DataTransfer();
        chosen.items.add(new File([picture], 'drawn.png', { type: 'image/png' }));
        const form = document.querySelector('#note');
        form.text.value = 'Buy milk';
        form.photo.files = chosen.files;
        form.requestSubmit();
      })()`);
      await page!.until(`document.querySelector('#notes img')?.naturalWidth === 37`);
      expect(await readNotes(page!)).toEqual(['Buy milk']);

      await page!.evaluate(`void location.reload()`);
      await page!.until(
        `document.querySelector('#notes img')?.naturalWidth === 37 && performance.getEntriesByType('navigation')[0].type === 'reload'`,
      );
      expect(await readNotes(page!)).toEqual(['Buy milk']);

      const shown = moved(receiver.shown!);
      await eventually('the webhook is printed', () => missingLines(shown, printed()).length === 0);
    });

    it('shows nobody else the note', async () => {
      await leave(page!);
      await enter(page!, 'signup', 'bob@example.com');
      expect(await readNotes(page!)).toEqual([]);
      await leave(page!);
      await enter(page!, 'login', 'ada@example.com');
      await page!.until(`document.querySelector('#notes li')`);
      expect(await readNotes(page!)).toEqual(['Buy milk']);
    });
  });
});

/** The answers that the documentation's page shows to three requests; the key is typed once. */
async function tryOperations(
  docs: DrivenPage,
  key: string,
): Promise<Record<'inserted' | 'listed' | 'refused', string>> {
  const inForm = (id: string, rest: string): string => `document.querySelector('#${id} .try ${rest}')`;
  const begin = async (id: string): Promise<void> => {
    await docs.until(inForm(id, 'button'));
    await docs.evaluate(`document.getElementById('${id}').open = true, ${inForm(id, 'button')}.click()`);
    await docs.until(inForm(id, 'form'));
  };
  const send = async (id: string): Promise<string> => {
    await docs.evaluate(`${inForm(id, '.answer')}.textContent = '', ${inForm(id, 'form')}.requestSubmit()`);
    await docs.until(`/^\\d/.test(${inForm(id, '.answer')}.textContent)`);
    return docs.evaluate<string>(`${inForm(id, '.answer')}.textContent`);
  };
  await begin('insertDocument');
  await docs.evaluate(`(() => {
    const key = ${inForm('insertDocument', '[name="x-api-key"]')};
    key.value = '${key}';
    key.dispatchEvent(new Event('input', { bubbles: true }));
    ${inForm('insertDocument', '[name="body"]')}.value = '{"title":"Tried"}';
  })()`);
  const inserted = await send('insertDocument');
  await begin('listDocuments');
  const list = async (query: string): Promise<string> => {
    await docs.evaluate(`${inForm('listDocuments', '[name="query"]')}.value = '${query}'`);
    return send('listDocuments');
  };
  return { inserted, listed: await list('title_regex=^tri&fields=title'), refused: await list('nothing=1') };
}

async function enter(app: DrivenPage, action: 'signup' | 'login', email: string): Promise<void> {
  await app.until(`document.querySelector('#account') && !document.querySelector('#account').hidden`);
  await app.evaluate(`(() => {
    const form = document.querySelector('#account');
    form.email.value = '${email}';
    form.password.value = 'correct horse';
    form.requestSubmit(form.querySelector('[value="${action}"]'));
  })()`);
  await app.until(`!document.querySelector('#note').hidden || document.querySelector('#message').textContent`);
  expect(await app.evaluate(`document.querySelector('#message').textContent`)).toBe('');
}
const leave = (app: DrivenPage): Promise<void> => app.evaluate(`document.querySelector('#leave').click()`);
const readNotes = (app: DrivenPage): Promise<string[]> =>
  app.evaluate(`[...document.querySelectorAll('#notes li')].map((item) => item.textContent)`);
