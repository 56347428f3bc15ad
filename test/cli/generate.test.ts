import { readFileSync, writeFileSync, mkdirSync, rmSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { openCliHome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const out = join(home.dir, 'bsvc-client');
const generate = (...more: string[]) => home.bsvc(['generate', 'client', '--out', 'bsvc-client', ...more]);

it('bsvc generate client writes the package to commit, and --check finds each file that differs', async () => {
  expect((await generate('--check')).code).toBe(1);
  expect(await generate()).toMatchObject({ code: 0 });
  expect(await generate()).toMatchObject({ code: 0 });
  expect(await generate('--check')).toMatchObject({ code: 0, stdout: 'bsvc-client is up to date.\n' });
  const { name, exports } = JSON.parse(readFileSync(join(out, 'package.json'), 'utf8')) as {
    name: string;
    exports: Record<string, Record<string, Record<string, string>>>;
  };
  expect(name).toBe('@bsvc/client');
  const named = Object.values(exports).flatMap((entry) => Object.values(entry).flatMap((kind) => Object.values(kind)));
  const files = readdirSync(out);
  expect(named.filter((path) => !files.includes(path.replace('./', '')))).toEqual([]);
  const { createClient } = (await import(pathToFileURL(join(out, 'client.js')).href)) as { createClient: unknown };
  expect(createClient).toBeTypeOf('function');
  for (const file of files) {
    const text = readFileSync(join(out, file), 'utf8');
    for (const damage of [() => writeFileSync(join(out, file), `${text} `), () => rmSync(join(out, file))]) {
      damage();
      const stale = await generate('--check');
      expect([stale.code, stale.stderr.includes(file)]).toEqual([1, true]);
    }
    writeFileSync(join(out, file), text);
  }
  expect((await generate('--check')).code).toBe(0);
});

it('bsvc generate client does not write over another package', async () => {
  mkdirSync(join(home.dir, 'app'));
  writeFileSync(join(home.dir, 'app', 'package.json'), '{"name":"app"}');
  const { code, stderr } = await home.bsvc(['generate', 'client', '--out', 'app']);
  expect([code, stderr.includes('another package')]).toEqual([1, true]);
  expect(readdirSync(join(home.dir, 'app'))).toEqual(['package.json']);
  expect((await home.bsvc(['generate', 'client'])).code).toBe(2);
});
