// Builds `dist`: the command line, with the server in it and without, as one script each, and what the engine of
// JavaScript has compiled of it; and the texts of `--help`. A start then opens two files instead of some 1,300, and
// neither parses nor compiles what it runs. Types are checked by `npm run types`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { build } from 'esbuild';
import { compileBundle, WHOLE_COMMANDS } from './bin/bundle.js';
import { EXTERNAL } from './src/packaging/external.mjs';
import { buildConsole } from './src/console/build.mjs';
import { ENTRIES } from './src/engine/entries.mjs';

/** @type {import('esbuild').BuildOptions} */
const options = {
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  target: 'node20.20',
  external: EXTERNAL,
  legalComments: 'none',
  logLevel: 'warning',
  // The process keeps the text in memory. Names stay, and lines that can be read in a log.
  minifyWhitespace: true,
  lineLimit: 160,
};

/** @type {import('esbuild').BuildOptions} */
const script = {
  ...options,
  format: 'cjs',
  // A script has neither of them by itself.
  define: { 'import.meta.url': '__moduleUrl' },
  supported: { 'dynamic-import': false },
  banner: {
    js: "(function (require, __filename) { const __moduleUrl = require('node:url').pathToFileURL(__filename).href;",
  },
  footer: { js: '})' },
};

const NATIVE_PART = `
  import { createRequire } from 'node:module';
  import { dirname, join } from 'node:path';
  export default function loadNativePart() {
    const { platform, arch, versions } = process;
    const load = createRequire(import.meta.url);
    const parts = '@lmdb/lmdb-' + platform + '-' + arch;
    for (const api of ['abi' + versions.modules, 'napi'])
      for (const library of ['.glibc', '.musl', ''])
        try {
          return load(parts + '/node.' + api + library + '.node');
        } catch {}
    // One that was compiled here.
    const lmdb = load.resolve('lmdb');
    return createRequire(lmdb)('node-gyp-build-optional-packages')(join(dirname(lmdb), '..'));
  }
`;

/**
 * What packages import and the service never uses, or not at its start, by the end of the import and a part of the path
 * of who imports it: a process keeps the text of its script in memory, and what a module makes when it is loaded.
 *
 * @type {{ path: RegExp, from: string, contents: string }[]}
 */
const REPLACED = [
  // Commander only wants it for commands in files of their own, of which there are none.
  {
    path: /^node:child_process$/,
    from: '/commander/',
    contents: "module.exports = { get spawn() { return require('node:child_process').spawn; } };",
  },
  // The JavaScript of lmdb is compiled with the rest, without its encoder of values, as the engine stores bytes alone.
  {
    path: /^msgpackr$/,
    from: '/lmdb/',
    contents: 'export class Encoder { constructor() { throw new Error("values are bytes"); } }',
  },
  // Its own search for the native part, which is in lmdb's package for this platform, takes as long as all of lmdb.
  { path: /^node-gyp-build-optional-packages$/, from: '/lmdb/', contents: NATIVE_PART },
  // Tables of all encodings: bodies are taken as bytes.
  {
    path: /^iconv-lite$/,
    from: '/raw-body/',
    contents: 'exports.getDecoder = () => { throw new Error("bodies are bytes"); };',
  },
  // The texts of errors in all languages: its only user checks options of this service's own.
  { path: /\/locales\/index\.js$/, from: '/zod/', contents: 'export {};' },
  // Questions at a terminal are answered in a line.
  {
    path: /^@inquirer\/external-editor$/,
    from: '/@inquirer/editor/',
    contents: 'export function editAsync() { throw new Error("there is no editor"); }',
  },
  // It asks for the stack, and so for where each line of the whole script begins, to tell developers of what is old.
  {
    path: /^depd$/,
    from: '/node_modules/',
    contents: 'module.exports = () => Object.assign(() => {}, { function: (use) => use, property() {} });',
  },
  // Three versions of one list of file types, of which one is loaded when the first is asked for.
  {
    path: /^mime-types$/,
    from: '/node_modules/',
    contents: `
      for (const name of ['charset', 'contentType', 'extension', 'lookup'])
        exports[name] = (text) => require('mime-types/index.js')[name](text);
    `,
  },
];

const replaceParts = {
  name: 'replace-parts',
  /** @param {import('esbuild').PluginBuild} build */
  setup(build) {
    for (const [at, { path, from }] of REPLACED.entries()) {
      build.onResolve({ filter: path }, ({ importer }) =>
        importer.includes(from) ? { path: String(at), namespace: 'replaced' } : undefined,
      );
    }
    build.onLoad({ filter: /.*/, namespace: 'replaced' }, ({ path }) => ({
      contents: REPLACED[path].contents,
      resolveDir: import.meta.dirname,
    }));
  },
};

if (process.argv[2] === 'record') await record();
else if (process.argv[2] === 'record-commands') recordCommand(['project', 'list']);
else await buildAll();

async function buildAll() {
  rmSync('dist', { recursive: true, force: true });
  await Promise.all([
    buildConsole(),
    build({ ...script, plugins: [replaceParts], entryPoints: { main: 'cli/main.ts' } }),
    build({
      ...script,
      plugins: [replaceParts],
      entryPoints: { commands: 'cli/main.ts' },
      external: [...EXTERNAL, ...WHOLE_COMMANDS.flatMap((name) => [`./${name}.js`, `./${name}/*.js`])],
    }),
    build({
      ...options,
      plugins: [replaceParts],
      entryPoints: Object.fromEntries(Object.entries(ENTRIES).map(([name, path]) => [name, `src/engine/${path}`])),
      format: 'esm',
      splitting: true,
      banner: {
        js: "import { createRequire as __makeRequire } from 'node:module'; const require = __makeRequire(import.meta.url);",
      },
    }),
  ]);
  await writeHelp();
  const recording = spawn(process.execPath, ['build.mjs', 'record'], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(recording, 'exit');
  if (code !== 0) throw new Error(`the start of the built server failed with exit code ${code}`);
}

/** Keeps the help of every command as a text. */
async function writeHelp() {
  const outfile = 'dist/help-texts.mjs';
  await build({
    ...options,
    outdir: undefined,
    outfile,
    format: 'esm',
    packages: 'external',
    entryPoints: ['cli/help-texts.ts'],
  });
  const { listHelpTexts } = await import(new URL(outfile, import.meta.url).href);
  rmSync(outfile);
  mkdirSync('dist/help');
  for (const [name, text] of await listHelpTexts()) writeFileSync(`dist/help/${name}.txt`, text);
}

/**
 * Starts the built server on an empty folder, until it answers, and runs a command beside it; then stores what has been
 * compiled of both by then.
 */
async function record() {
  const data = mkdtempSync(join(tmpdir(), 'bsvc-build-'));
  const port = await freePort();
  Object.assign(process.env, {
    BSVC_DATA_DIR: data,
    BSVC_PORT: String(port),
    BSVC_HOST: '127.0.0.1',
    BSVC_LOG_LEVEL: 'warn',
  });
  process.on('exit', () => rmSync(data, { recursive: true, force: true }));
  recordCommand(['serve']);
  while ((await status(`http://127.0.0.1:${port}/api/health/ready`)) !== 200) await wait(20);
  const listing = spawn(process.execPath, ['build.mjs', 'record-commands'], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(listing, 'exit');
  if (code !== 0) throw new Error(`a command of the build failed with exit code ${code}`);
  process.kill(process.pid, 'SIGTERM');
}

/** @param {string[]} words */
function recordCommand(words) {
  const { script, cache, run } = compileBundle(words);
  process.on('exit', () => writeFileSync(cache, script.createCachedData()));
  process.argv.splice(1, Infinity, 'bsvc', ...words);
  run();
}

/** @returns {Promise<number>} */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** @param {string} url */
function status(url) {
  return new Promise((resolve) => {
    get(url, (reply) => resolve(reply.resume().statusCode)).on('error', () => resolve(0));
  });
}
