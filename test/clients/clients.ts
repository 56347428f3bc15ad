import { spawn, spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openEngine } from '../../src/engine/index.js';
import { ENGINE_README } from '../../src/engine/test/helpers/engine-readme.js';
import { openTempDir } from '../helpers/temp-dir.js';

/*
 * Software made for MongoDB, as its makers publish it, on the embedded engine's wire transport: each is fetched from
 * the npm registry into a temporary folder, or is one of the system's packages, and runs its script of this folder.
 * Prints what works and what is refused; ends with 1 when something fails.
 *
 *   npm run clients                     all of them
 *   npm run clients -- mongoose agenda  only these
 *   npm run clients -- --write          and puts the table into src/engine/README.md
 */

interface System {
  readonly command: string;
  readonly script: string;
  readonly version: readonly string[];
  readonly install: string;
  /** What compiles the script into the command, and its environment. */
  readonly compile?: { command: string; args: readonly string[]; env: Readonly<Record<string, string>> };
}

interface Client {
  readonly title: string;
  /** What is fetched, the package named in the table first. */
  readonly packages: Readonly<Record<string, string>>;
  /** Of one that the system has instead: what runs its script, what prints its version, how it is installed. */
  readonly system?: System;
}

const CLIENTS: Readonly<Record<string, Client>> = {
  driver: { title: 'Official driver', packages: { mongodb: '7' } },
  mongoose: { title: 'mongoose', packages: { mongoose: '8' } },
  'connect-mongo': { title: 'connect-mongo', packages: { 'connect-mongo': '5', mongodb: '6', 'express-session': '1' } },
  agenda: { title: 'agenda', packages: { agenda: '5' } },
  'parse-server': { title: 'Parse Server', packages: { 'parse-server': '9', express: '5' } },
  mongosh: { title: 'mongosh', packages: { mongosh: '2' } },
  pymongo: {
    title: 'PyMongo',
    packages: {},
    system: {
      command: '/usr/bin/python3',
      script: 'python-driver.py',
      version: ['-c', 'import pymongo, gridfs; print(pymongo.version)'],
      install: 'apt-get install python3-pymongo python3-gridfs',
    },
  },
  payload: { title: 'Payload', packages: { payload: '3', '@payloadcms/db-mongodb': '3' } },
  go: {
    title: 'Go driver',
    packages: {},
    system: {
      command: './go-driver',
      script: 'go-driver.go',
      version: ['--version'],
      install: 'apt-get install golang-go golang-mongodb-mongo-driver-dev',
      compile: {
        command: 'go',
        args: ['build', '-o', 'go-driver', 'go-driver.go'],
        env: { GO111MODULE: 'off', GOPATH: '/usr/share/gocode' },
      },
    },
  },
};

interface Step {
  step: string;
  outcome: 'works' | 'refused' | 'fails';
  why: string;
}

interface Outcome {
  title: string;
  version: string;
  steps: Step[];
}

const CLIENT_MS = 180_000;
const HEADING = '### Clients\n\n';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false } },
});
const names = positionals.length === 0 ? Object.keys(CLIENTS) : positionals;
const unknown = names.find((name) => !Object.hasOwn(CLIENTS, name));
if (unknown !== undefined) {
  console.error(`no client is called "${unknown}": choose of ${Object.keys(CLIENTS).join(', ')}`);
  process.exit(2);
}

const { path: folder, remove } = await openTempDir();
const outcomes: Outcome[] = [];
try {
  for (const name of names) outcomes.push(await runClient(name, CLIENTS[name]!));
} finally {
  await remove();
}

const failures = outcomes.flatMap(({ title, steps }) =>
  steps.filter(({ outcome }) => outcome === 'fails').map(({ step, why }) => `${title}: ${step}: ${why}`),
);
const table = presentTable(outcomes);
console.log(`\n${table}`);
for (const failure of failures) console.log(`FAILS ${failure}`);
if (options.write && failures.length === 0) writeTable(table);
process.exit(failures.length === 0 ? 0 : 1);

/** Fetches a client and runs its script against an engine of its own. */
async function runClient(name: string, { title, packages, system }: Client): Promise<Outcome> {
  const home = join(folder, name);
  cpSync(import.meta.dirname, home, { recursive: true, filter: (from) => !from.endsWith('.ts') });
  if (system !== undefined) {
    const { compile } = system;
    if (compile) {
      const env = { PATH: process.env['PATH'], ...compile.env, GOCACHE: join(home, 'cache') };
      spawnSync(compile.command, compile.args, { cwd: home, env, stdio: ['ignore', 'ignore', 'inherit'] });
    }
    const asked = spawnSync(system.command, system.version, { cwd: home, encoding: 'utf8' });
    if (asked.status !== 0)
      return { title, version: '', steps: [{ step: 'install', outcome: 'fails', why: system.install }] };
    return runOn(home, title, asked.stdout.trim(), system.command, compile ? [] : [system.script]);
  }
  writeFileSync(
    join(home, 'package.json'),
    JSON.stringify({ private: true, type: 'module', dependencies: packages }, null, 2),
  );
  const install = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts'], {
    cwd: home,
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  });
  if (install.status !== 0) {
    const why = install.stderr.split('\n').find((line) => line.startsWith('npm error')) ?? 'npm install failed';
    return { title, version: '', steps: [{ step: 'install', outcome: 'fails', why }] };
  }
  const [first] = Object.keys(packages);
  const { version } = JSON.parse(readFileSync(join(home, 'node_modules', first!, 'package.json'), 'utf8')) as {
    version: string;
  };
  return runOn(home, title, version, process.execPath, [`${name}.mjs`]);
}

async function runOn(
  home: string,
  title: string,
  version: string,
  command: string,
  args: readonly string[],
): Promise<Outcome> {
  const engine = openEngine({ dataDir: join(home, 'data'), durability: 'relaxed', readerThreads: 1 });
  try {
    const { uri } = await engine.listen('127.0.0.1:0');
    const steps = await runScript(home, command, [...args, uri]);
    for (const { step, outcome, why } of steps) console.log(`${title} ${version}: ${step}: ${outcome} ${why}`);
    return { title, version, steps };
  } finally {
    await engine.close();
  }
}

async function runScript(home: string, command: string, args: readonly string[]): Promise<Step[]> {
  const child = spawn(command, args, { cwd: home, stdio: ['ignore', 'pipe', 'pipe'] });
  const timer = setTimeout(() => child.kill('SIGKILL'), CLIENT_MS);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  const steps = stdout
    .split('\n')
    .filter((line) => line.startsWith('STEP '))
    .map((line) => JSON.parse(line.slice('STEP '.length)) as Step);
  if (code === 0) return steps;
  const why =
    code === null ? `it did not end within ${CLIENT_MS / 1000} s` : stderr.trim().split('\n').slice(-12).join(' ');
  return [...steps, { step: 'the script', outcome: 'fails', why }];
}

function presentTable(rows: readonly Outcome[]): string {
  const list = (steps: readonly Step[], wanted: Step['outcome']): string =>
    steps
      .filter(({ outcome }) => outcome === wanted)
      .map(({ step }) => step)
      .join(' · ');
  const lines = rows.map(
    ({ title, version, steps }) => `| ${title} ${version} | ${list(steps, 'works')} | ${list(steps, 'refused')} |`,
  );
  return ['| Client | Works | Refused |', '| --- | --- | --- |', ...lines].join('\n');
}

function writeTable(text: string): void {
  const parts = readFileSync(ENGINE_README, 'utf8').split(HEADING);
  if (parts.length !== 2) throw new Error('src/engine/README.md has no heading "Clients", or two');
  const rest = parts[1]!.slice(parts[1]!.indexOf('\n\n| '));
  const end = rest.indexOf('\n\n', 2);
  const intro = parts[1]!.slice(0, parts[1]!.indexOf('\n\n| '));
  writeFileSync(ENGINE_README, `${parts[0]}${HEADING}${intro}\n\n${text}${rest.slice(end)}`);
  spawnSync(join('node_modules', '.bin', 'prettier'), ['--write', ENGINE_README], { stdio: 'inherit' });
}
