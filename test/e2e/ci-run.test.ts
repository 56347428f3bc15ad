import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.js';
import { runShell } from '../helpers/run-shell.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const ROOT = join(import.meta.dirname, '..', '..');
/** Of the project, all that decides what is wrong in a file; the files themselves are a few lines each. */
const RULES = [
  ...['.ci', '.prettierrc.json', '.prettierignore', '.oxlintrc.json', 'package.json', 'tsconfig.json'],
  ...['src/client/tsconfig.json', 'src/console/tsconfig.json'],
];
const SOUND = 'export const ANSWER: number = 42;\n';
const LIMIT_MS = 240_000;

const dir = use(await openTempDir());
const plant = (folder: string, text: string): Promise<void> => writeFile(join(dir.path, folder, 'answer.ts'), text);
for (const path of RULES) await cp(join(ROOT, path), join(dir.path, path), { recursive: true });
await symlink(join(ROOT, 'node_modules'), join(dir.path, 'node_modules'));
await mkdir(join(dir.path, 'test/helpers'), { recursive: true });
for (const folder of ['src', 'src/client', 'src/console', 'test']) await plant(folder, SOUND);
// Types and lint begin by it; there are no routes here.
await writeFile(join(dir.path, 'test/helpers/generate.ts'), 'export {};\n');

/** The commands of processes that work below a folder; none where the system does not tell. */
function processesIn(folder: string): string[] {
  if (!existsSync('/proc/self/cwd')) return [];
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return ids.flatMap((id) => {
    try {
      const isBelow = readlinkSync(`/proc/${id}/cwd`).startsWith(folder);
      return isBelow ? [readFileSync(`/proc/${id}/cmdline`, 'utf8').replaceAll('\0', ' ')] : [];
    } catch {
      return [];
    }
  });
}

// What npm logs in its home, which is here, is no file of the project.
const run = () => runShell(dir.path, ['.ci/run', 'installed'], { npm_config_logs_max: '0' }, LIMIT_MS);

it.each([
  ['types', 'src', "export const ANSWER: number = '42';\n"],
  ['types', 'src/console', "export const ANSWER: number = '42';\n"],
  ['format', 'test', 'export const ANSWER:number=42\n'],
  ['lint', 'src/client', 'export let answer = 42;\nif (answer == 43) answer = 44;\n'],
])('.ci/run ends before the tests where npm run %s fails in %s', async (check, folder, fault) => {
  await plant(folder, fault);
  const { code, output } = await run();
  await plant(folder, SOUND);
  expect(output).toContain(`npm run ${check} fails`);
  expect(output).toMatch(/answer\.ts/);
  expect(output).not.toContain('the quick tests');
  expect(output).toMatch(/\n0 passed, 1 failed\n$/);
  expect(code).toBe(1);
  // The checks that were still at work have ended, with what they had started.
  await eventually('no check is left', () => processesIn(dir.path).length === 0);
});

it('.ci/run goes on to both runs of the tests where all three are content, and fails with them', async () => {
  const { code, output } = await run();
  // There are none in this folder, so neither leaves a report.
  expect(output).toContain('no report of the quick tests');
  expect(output).toContain('no report of the deep tests');
  expect(code).toBe(1);
});
