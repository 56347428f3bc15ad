import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

const ROOT = join(import.meta.dirname, '..', '..');

let dir: TempDir;
let checkout: string;
let home: string;
let calls: string;

// A checkout of the files that install.sh looks at, and an npm that notes its calls and leaves what a real one would
// leave.
beforeEach(async () => {
  dir = await openTempDir();
  checkout = join(dir.path, 'checkout');
  home = join(dir.path, 'home');
  calls = join(dir.path, 'calls');
  for (const path of [checkout, home, join(checkout, 'bin'), join(checkout, 'src'), join(checkout, 'cli'), tool()]) {
    mkdirSync(path, { recursive: true });
  }
  for (const file of ['install.sh', 'package.json', 'package-lock.json', 'tsconfig.json', 'build.mjs']) {
    copyFileSync(join(ROOT, file), join(checkout, file));
  }
  for (const file of ['bsvc.js', 'bundle.js', 'package.json'])
    copyFileSync(join(ROOT, 'bin', file), join(checkout, 'bin', file));
  writeFileSync(calls, '');
  addTool(
    'npm',
    `echo "$*" >> '${calls}'
case "$1 $2" in
  'prefix -g') echo '${join(dir.path, 'prefix')}' ;;
  ci*) mkdir -p node_modules ;;
  'run --silent')
    mkdir -p dist
    echo '(function () { console.log(process.argv.slice(2).join(" ")) })' | tee dist/main.js > dist/commands.js ;;
esac`,
  );
});
afterEach(() => dir.remove());

const tool = (name = ''): string => join(dir.path, 'tools', name);
function addTool(name: string, script: string): void {
  writeFileSync(tool(name), `#!/usr/bin/env bash\n${script}\n`);
  chmodSync(tool(name), 0o755);
}

async function install(words: string[] = [], path: string[] = []) {
  const nodeDir = join(process.execPath, '..');
  const child = spawn('bash', [join(checkout, 'install.sh'), ...words], {
    env: { HOME: home, PATH: [tool(), ...path, nodeDir, '/usr/bin', '/bin'].join(':') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const [code] = (await once(child, 'close')) as [number];
  return { code, stdout, stderr };
}

const npmCalls = (): string[] =>
  readFileSync(calls, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && line !== 'prefix -g')
    .map((line) => line.split(' ').slice(0, 3).join(' '));

describe('install.sh', () => {
  it('installs and builds, and does neither again when nothing changed', async () => {
    expect((await install()).code).toBe(0);
    expect(npmCalls()).toEqual(['ci --no-audit --no-fund', 'run --silent build']);
    writeFileSync(calls, '');
    expect((await install()).code).toBe(0);
    expect(npmCalls()).toEqual([]);
  });

  it('installs again when the lock file changed, and builds again when a source did', async () => {
    await install();
    writeFileSync(calls, '');
    writeFileSync(join(checkout, 'package-lock.json'), '{}');
    await install();
    expect(npmCalls()).toEqual(['ci --no-audit --no-fund']);
    writeFileSync(calls, '');
    writeFileSync(join(checkout, 'src', 'new.ts'), '');
    utimesSync(join(checkout, 'src', 'new.ts'), new Date(), new Date(Date.now() + 60_000));
    await install();
    expect(npmCalls()).toEqual(['run --silent build']);
  });

  it('does not install what "npm ci" has just installed, and installs what is of another lock file', async () => {
    mkdirSync(join(checkout, 'node_modules'));
    copyFileSync(
      join(ROOT, 'node_modules', '.package-lock.json'),
      join(checkout, 'node_modules', '.package-lock.json'),
    );
    symlinkSync(join(ROOT, 'node_modules', 'lmdb'), join(checkout, 'node_modules', 'lmdb'));
    await install();
    expect(npmCalls()).toEqual(['run --silent build']);
    rmSync(join(checkout, 'node_modules', '.installed-by-bsvc'));
    const lock = join(checkout, 'package-lock.json');
    writeFileSync(lock, readFileSync(lock, 'utf8').replace(/"integrity": "sha512-./, '"integrity": "sha512-?'));
    writeFileSync(calls, '');
    await install();
    expect(npmCalls()).toEqual(['ci --no-audit --no-fund']);
  });

  it('links bsvc into a directory of the PATH that may be written', async () => {
    const bin = join(home, '.local', 'bin');
    mkdirSync(bin, { recursive: true });
    const { stderr } = await install([], [bin]);
    expect(stderr).toContain(`is installed: ${join(bin, 'bsvc')}`);
    expect(readlinkSync(join(bin, 'bsvc'))).toBe(join(checkout, 'bin', 'bsvc.js'));
    expect((await install([], [bin])).stderr).toContain(`is installed: ${join(bin, 'bsvc')}`);
  });

  it('never replaces a bsvc that is not its own, and then prints the path to call', async () => {
    const bin = join(home, '.local', 'bin');
    mkdirSync(bin, { recursive: true });
    symlinkSync('/bin/true', join(bin, 'bsvc'));
    const { code, stderr } = await install([], [bin]);
    const own = join(checkout, 'bin', 'bsvc.js');
    expect(code).toBe(0);
    expect(stderr).toContain(
      `${join(bin, 'bsvc')} is another bsvc and stays: remove it and run this again, or call ${own}`,
    );
    expect(stderr).toContain(`Next: ${own} serve --demo`);
    expect(readlinkSync(join(bin, 'bsvc'))).toBe('/bin/true');
    expect(existsSync(join(home, 'bin'))).toBe(false);
  });

  it('names the path to call when no directory of the PATH may be written', async () => {
    const { stderr } = await install();
    expect(stderr).toContain(`call it as ${join(checkout, 'bin', 'bsvc.js')}`);
  });

  it('starts the server with --run and its options, and runs the tests with --test', async () => {
    expect((await install(['--run'])).stdout).toBe('serve --demo\n');
    expect((await install(['--run', '--port', '21204'])).stdout).toBe('serve --demo --port 21204\n');
    await install(['--test']);
    expect(npmCalls().at(-1)).toBe('test');
  });

  it.each(['18.19.0', '20.19.9'])('refuses Node.js %s with a sentence', async (version) => {
    addTool('node', `if [ "$1" = -p ]; then echo ${version}; else exit 1; fi`);
    const { code, stderr } = await install();
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining(`Node.js 20.20 or newer is needed; this is ${version}`) as string,
    });
    expect(npmCalls()).toEqual([]);
  });

  it('refuses unknown options with exit 2 and explains itself with --help', async () => {
    expect((await install(['--fast'])).code).toBe(2);
    const { code, stdout } = await install(['--help']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('./install.sh --run') as string });
  });
});
