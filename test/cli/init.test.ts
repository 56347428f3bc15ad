import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openCliHome } from '../helpers/run-cli.js';

let home: ReturnType<typeof openCliHome>;
beforeEach(() => {
  home = openCliHome();
});
afterEach(() => home.remove());
const read = (...path: string[]): string => readFileSync(join(home.dir, ...path), 'utf8');

it('bsvc init writes a declaration that can be applied as it stands, and says what comes next', async () => {
  const { json } = await home.bsvc(['init', '--name', 'shop', '--json']);
  expect(json()).toEqual({
    project: 'shop',
    files: ['bsvc.yaml', '.env.example'],
    next: ['cp .env.example .env', 'bsvc serve &', 'bsvc apply --yes'],
  });
  expect((await home.bsvc(['apply', '--yes', '--json'])).code).toBe(0);
  const checked = await home.bsvc(['rules', 'check', '--project', 'shop', '--json']);
  expect([checked.code, checked.stdout.includes('items')]).toEqual([0, true]);
  expect((await home.bsvc(['apply'])).stdout).toContain('Nothing to change');
});

it('writes every setting of .env.example as one that there is', async () => {
  await home.bsvc(['init']);
  const named = [...read('.env.example').matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name!);
  const { stdout } = await home.bsvc(['settings', '--json']);
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((name) => !stdout.includes(`"${name}"`))).toEqual([]);
});

it('names the project after the folder, and quotes what a shell would take for something else', async () => {
  const { json } = await home.bsvc(['init', 'My app', '--template', 'react', '--json']);
  const { project, next } = json<{ project: string; next: string[] }>();
  expect([project, next[0]]).toEqual(['My app', `cd 'My app'`]);
  expect(next.join('\n')).toContain(`--project 'My app'`);
  const applied = await home.bsvc(['apply', '-f', join('My app', 'bsvc.yaml'), '--yes', '--json']);
  expect(applied.stdout).toContain(`"name":"My app"`);
});

it('overwrites nothing, and writes nothing where a file is there already', async () => {
  mkdirSync(join(home.dir, 'app/src'), { recursive: true });
  writeFileSync(join(home.dir, 'app/src/api.js'), 'mine');
  const { code, stderr } = await home.bsvc(['init', 'app', '--template', 'react']);
  expect([code === 0, stderr]).toEqual([false, expect.stringContaining('src/api.js already exists and differs')]);
  expect([read('app/src/api.js'), readdirSync(join(home.dir, 'app'))]).toEqual(['mine', ['src']]);
});

it('leaves a folder of that name alone', async () => {
  mkdirSync(join(home.dir, 'bsvc.yaml'));
  const { code, stderr } = await home.bsvc(['init']);
  expect([code, stderr]).toEqual([1, expect.stringContaining('bsvc.yaml already exists')]);
});

it('goes on where an interrupted run has ended', async () => {
  await home.bsvc(['init', 'app', '--template', 'react']);
  rmSync(join(home.dir, 'app/src'), { recursive: true });
  expect((await home.bsvc(['init', 'app', '--template', 'react'])).code).toBe(0);
  expect(read('app/src/lists.jsx')).toContain('useFollow');
});

it.each([
  [['init', '--template', 'vue'], 'react'],
  [['init', '--name', ''], 'name'],
  [['init', ''], 'empty'],
])('refuses %j', async (argv, word) => {
  const { code, stderr } = await home.bsvc(argv);
  expect([code, stderr]).toEqual([2, expect.stringContaining(word)]);
  expect(readdirSync(home.dir)).not.toContain('bsvc.yaml');
});
