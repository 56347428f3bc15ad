import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CHROMIUM, drivePage, type DrivenPage } from '../helpers/chromium.js';
import { eventually } from '../helpers/eventually.js';
import { findFreePort } from '../helpers/listen.js';
import { runOrThrow, startService } from '../helpers/run-binary.js';
import { runShell } from '../helpers/run-shell.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

// `bsvc init --template react` in an empty folder, then what it says comes next. Only ports are others, and packages
// come from this checkout instead of the registry.
const ROOT = join(import.meta.dirname, '../..');
const PACKAGES = ['react', 'react-dom', 'vite'];

const pages: DrivenPage[] = [];

const shell = async (text: string): Promise<string> => {
  const { code, output } = await runShell(app, ['-c', text], {}, 100_000);
  expect([code, output]).toEqual([0, output]);
  return output;
};
const move = (text: string): string => text.replace(/\b(4000|5173)\b/g, (port) => `${ports[port]}`);

const dir = use(await openTempDir());
const app = join(dir.path, 'my-app');
const ports: Record<string, number> = { 4000: await findFreePort(), 5173: await findFreePort() };
const told = await runOrThrow(['init', app, '--template', 'react', '--json'], {});
const next = (JSON.parse(told) as { next: string[] }).next;
for (const file of ['bsvc.yaml', '.env.example', 'vite.config.js']) {
  writeFileSync(join(app, file), move(readFileSync(join(app, file), 'utf8')));
}
takePackages();
const [, settings, , apply, key] = next;
await shell(`${settings} && ${apply} && ${key} && npm run --silent build`);
const env = { BSVC_DATA_DIR: join(app, 'bsvc-data'), BSVC_BCRYPT_COST: '4' };
const service = await startService(['serve', '--port', `${ports[4000]}`, '--public', join(app, 'dist'), '--spa'], env);
afterAll(async () => {
  for (const page of pages) await page.close();
  await service?.stop();
});

/** What `npm install` would do. */
function takePackages(): void {
  const folder = join(app, 'node_modules');
  for (const path of ['.bin', '@bsvc']) mkdirSync(join(folder, path), { recursive: true });
  symlinkSync(join(app, 'bsvc-client'), join(folder, '@bsvc/client'));
  for (const name of PACKAGES) symlinkSync(join(ROOT, 'node_modules', name), join(folder, name));
  symlinkSync(join(ROOT, 'node_modules/vite/bin/vite.js'), join(folder, '.bin/vite'));
}

describe('bsvc init --template react', () => {
  it('names the versions that it was tried with', () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(app, 'package.json'), 'utf8')) as Record<
      string,
      Record<string, string>
    >;
    for (const name of PACKAGES) {
      const { version } = JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')) as {
        version: string;
      };
      expect([name, { ...dependencies, ...devDependencies }[name]]).toEqual([name, version]);
    }
  });

  it('says what comes next, ending with a page', () => {
    expect(next.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
      ...[`cd ${app}`, 'cp .env.example', 'bsvc serve', 'bsvc apply', 'echo "VITE_BSVC_KEY=$(bsvc'],
      ...['npm install', 'npm run', 'npm run'],
    ]);
  });

  it('is served by Vite while it is developed, which passes on what is the service’s', async () => {
    const vite: ChildProcess = spawn(process.execPath, [join(app, 'node_modules/.bin/vite')], {
      cwd: app,
      stdio: 'ignore',
    });
    try {
      const url = `http://localhost:${ports[5173]}`;
      const health = await eventually('Vite answers', () => fetch(`${url}/api/health`).catch(() => null));
      expect(await health.json()).toMatchObject({ status: 'ok' });
      expect(await (await fetch(`${url}/src/api.js`)).text()).toContain('VITE_BSVC_KEY');
    } finally {
      vite.kill('SIGKILL');
      await once(vite, 'exit');
    }
  });

  it('is built into files of which browsers keep those that never change', async () => {
    const url = `http://localhost:${ports[4000]}`;
    const page = await fetch(`${url}/`);
    expect([page.status, page.headers.get('cache-control')]).toEqual([200, 'no-cache']);
    const assets = [...(await page.text()).matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path!);
    expect(assets.map((path) => path.split('.').at(-1)).sort()).toEqual(['css', 'js']);
    for (const path of assets) {
      const { status, headers } = await fetch(url + path, { headers: { range: 'bytes=0-9' } });
      expect([status, headers.get('content-length'), headers.get('cache-control')]).toEqual([
        206,
        '10',
        'public, max-age=31536000, immutable',
      ]);
    }
    for (const path of ['/assets/index-00000000.js', '/.env', '/..%2fbsvc.yaml', '/%2e%2e/.env.local']) {
      expect([path, (await fetch(url + path)).status]).toEqual([path, 404]);
    }
  });

  it.skipIf(!CHROMIUM)(
    'has a page with lists that their owner shares, and that others see change at once',
    async () => {
      const url = `http://localhost:${ports[4000]}/`;
      const [ada, bob] = [await drivePage(url), await drivePage(url)];
      pages.push(ada, bob);
      await signUp(ada, 'ada');
      await signUp(bob, 'bob');
      await submit(ada, 'nav form', { title: 'Party' });
      await ada.until(`document.querySelector('section h2')?.textContent === 'Party'`);
      await submit(ada, 'section form', { text: 'Bread' });
      await ada.until(items('Bread'));
      expect(await bob.evaluate(`document.body.textContent.includes('Party')`)).toBe(false);

      await submit(ada, 'section form:nth-of-type(2)', { username: 'nobody' });
      await ada.until(`document.querySelector('[role=alert]')?.textContent`);
      await submit(ada, 'section form:nth-of-type(2)', { username: 'bob' });
      await bob.until(items('Bread'));
      expect(await bob.evaluate(`document.querySelector('nav').textContent`)).toContain('shared with you');
      // Only who owns it shares it further.
      expect(await bob.evaluate(`document.querySelectorAll('section form').length`)).toBe(1);

      await submit(bob, 'section form', { text: 'Milk' });
      await ada.until(items('Bread', 'Milk'));
      await bob.evaluate(`document.querySelector('.items input').click()`);
      await ada.until(`document.querySelector('.items input').checked`);
      await ada.evaluate(`document.querySelector('.items button').click()`);
      await bob.until(items('Milk'));

      await bob.evaluate(`void location.reload()`);
      await bob.until(`performance.getEntriesByType('navigation')[0].type === 'reload' && ${items('Milk')}`);
      await bob.evaluate(`document.querySelector('header button').click()`);
      await bob.until(`document.querySelector('.account')`);
      await bob.visit(`${url}lists/7`);
      await bob.until(`location.pathname === '/lists/7' && document.querySelector('.account')`);
    },
  );
});

const items = (...texts: string[]): string =>
  `[...document.querySelectorAll('.items span')].map((each) => each.textContent).join() === '${texts.join()}'`;

async function signUp(page: DrivenPage, username: string): Promise<void> {
  await page.until(`document.querySelector('.account form')`);
  await submit(page, '.account form', { username, email: `${username}@example.com`, password: 'correct horse' });
  await page.until(`document.querySelector('header p')?.textContent.startsWith('${username}')`);
}

const submit = (page: DrivenPage, form: string, fields: Record<string, string>): Promise<void> =>
  page.evaluate(`(() => {
    const form = document.querySelector(${JSON.stringify(form)});
    for (const [name, value] of Object.entries(${JSON.stringify(fields)})) form.elements[name].value = value;
    form.requestSubmit();
  })()`);
