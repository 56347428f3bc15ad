import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/*
 *   npm run bench                      the server over HTTP, beside its floors
 *   npm run bench NAME -- OPTIONS      one of the others, by its name below
 *   npm run soak NAME -- OPTIONS       processes killed under load; `service` unless named
 */

/** Each script by its name; what begins with `dist` runs compiled, so that the loader costs its figures nothing. */
const SCRIPTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  bench: {
    http: 'test/bench/http.ts',
    accounts: 'test/bench/accounts.ts',
    changes: 'test/bench/changes.ts',
    compare: 'test/bench/compare.ts',
    console: 'test/bench/console.ts',
    disk: 'test/bench/disk.ts',
    engine: 'dist/bench/test/bench/engine.js',
    heavy: 'test/bench/heavy-reads.ts',
    hooks: 'test/bench/hooks.ts',
    public: 'test/bench/public.ts',
    rules: 'test/bench/rules.ts',
    start: 'test/bench/start.ts',
    writes: 'test/bench/writes.ts',
  },
  soak: {
    service: 'test/bench/soak.ts',
    changes: 'test/bench/changes-soak.ts',
    kept: 'test/bench/kept-soak.ts',
    store: 'test/bench/store-soak.ts',
    strangers: 'test/bench/strangers.ts',
  },
};

const [kind = 'bench', ...words] = process.argv.slice(2);
const scripts = SCRIPTS[kind]!;
const isNamed = words[0] !== undefined && !/^(-|\d)/.test(words[0]);
const name = isNamed ? words[0]! : Object.keys(scripts)[0]!;
const script = scripts[name];
if (script === undefined) {
  console.error(`npm run ${kind} has no "${name}": choose one of ${Object.keys(scripts).join(', ')}`);
  process.exit(2);
}

const bin = (tool: string): string => join('node_modules', '.bin', tool);
const run = (command: string, args: string[]): void => {
  const { status } = spawnSync(command, args, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
};

run('npm', ['run', '--silent', 'build']);
if (script.startsWith('dist')) run(bin('tsc'), ['-p', 'test/bench/tsconfig.json']);
const options = words.slice(isNamed ? 1 : 0);
if (script.startsWith('dist')) run(process.execPath, [script, ...options]);
else run(bin('tsx'), ['--import', './test/bench/end-started.ts', script, ...options]);
