#!/usr/bin/env node
// A generator of clients that is too large to install for every run of the tests: orval makes a client of the API
// document of the service and of a project, and both compile in strict TypeScript.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const ORVAL = '7.13.2';
const ROOT = join(import.meta.dirname, '..');
const BINARY = join(ROOT, 'bin', 'bsvc.js');
const TSC = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
const STRICT = [
  '--strict',
  '--noEmit',
  '--target',
  'es2022',
  '--module',
  'nodenext',
  '--lib',
  'es2022,dom,dom.iterable',
];

const place = mkdtempSync(join(tmpdir(), 'bsvc-generated-'));
const data = join(place, 'data');
const run = (command, words, options) => execFileSync(command, words, { cwd: place, encoding: 'utf8', ...options });
const server = spawn(process.execPath, [BINARY, 'serve', '--demo', '--port', '0', '--json', '--data-dir', data], {
  env: { ...process.env, BSVC_LOG_LEVEL: 'warn' },
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const [line] = await once(createInterface(server.stdout), 'line');
  writeFileSync(join(place, 'package.json'), '{"private":true}');
  const quietly = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  run('npm', ['install', `orval@${ORVAL}`, ...quietly], { stdio: 'inherit' });
  const { generate } = await import(join(place, 'node_modules', 'orval', 'dist', 'index.js'));
  const documents = {
    service: await (await fetch(`${JSON.parse(line).url}/api/openapi.json`)).text(),
    project: run(process.execPath, [BINARY, 'generate', 'openapi', '--project', 'demo', '--data-dir', data]),
  };
  for (const [name, document] of Object.entries(documents)) {
    mkdirSync(join(place, name));
    writeFileSync(join(place, name, 'openapi.json'), document);
    const target = join(place, name, 'client.ts');
    await generate({ input: join(place, name, 'openapi.json'), output: { target, client: 'fetch', mode: 'single' } });
    if (statSync(target).size < 10_000) throw new Error(`the client of the ${name} is almost empty`);
    run(process.execPath, [TSC, ...STRICT, target], { stdio: 'inherit' });
    console.log(`orval makes a client of the ${name} that compiles`);
  }
} finally {
  server.kill('SIGKILL');
  rmSync(place, { recursive: true, force: true });
}
