// Builds `dist`: the command line, and the server in it, as one script, and what the engine of JavaScript has compiled
// of it. A start then opens two files instead of some 1,300, and neither parses nor compiles what it runs. Types are
// checked by `npm run types`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { build } from 'esbuild';
import { compileBundle } from './bin/bundle.js';
import { buildConsole } from './src/console/build.mjs';

/** What is loaded from a folder of its own: native parts, what is found by name at run time, what few starts need. */
const EXTERNAL = [
  ...['lmdb', 'bcrypt', 'mongodb', 'bson', 'ajv', 'jsonwebtoken'],
  ...['@aws-sdk/*', '@opentelemetry/*', 'nodemailer', 'prom-client', 'resend', 'undici', 'yaml'],
];

/** @type {import('esbuild').BuildOptions} */
const options = {
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  target: 'node20.20',
  external: EXTERNAL,
  legalComments: 'none',
  logLevel: 'warning',
};

if (process.argv[2] === 'record') await record();
else await buildAll();

async function buildAll() {
  rmSync('dist', { recursive: true, force: true });
  await Promise.all([
    buildConsole(),
    build({
      ...options,
      entryPoints: { main: 'cli/main.ts' },
      format: 'cjs',
      // A script has neither of them by itself.
      define: { 'import.meta.url': '__moduleUrl' },
      supported: { 'dynamic-import': false },
      banner: {
        js: "(function (require, __filename) { const __moduleUrl = require('node:url').pathToFileURL(__filename).href;",
      },
      footer: { js: '})' },
    }),
    build({
      ...options,
      entryPoints: { 'reader-thread': 'src/engine/readers/reader-thread.ts' },
      format: 'esm',
      banner: {
        js: "import { createRequire as __makeRequire } from 'node:module'; const require = __makeRequire(import.meta.url);",
      },
    }),
  ]);
  const recording = spawn(process.execPath, ['build.mjs', 'record'], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(recording, 'exit');
  if (code !== 0) throw new Error(`the start of the built server failed with exit code ${code}`);
}

/** Starts the built server on an empty folder, until it answers; then stores what has been compiled by then. */
async function record() {
  const data = mkdtempSync(join(tmpdir(), 'bsvc-build-'));
  const port = await freePort();
  Object.assign(process.env, {
    BSVC_DATA_DIR: data,
    BSVC_PORT: String(port),
    BSVC_HOST: '127.0.0.1',
    BSVC_LOG_LEVEL: 'warn',
  });
  process.argv.splice(1, Infinity, 'bsvc', 'serve');
  const { script, run } = compileBundle();
  process.on('exit', () => {
    writeFileSync(new URL('dist/main.cache', import.meta.url), script.createCachedData());
    rmSync(data, { recursive: true, force: true });
  });
  run();
  while ((await status(`http://127.0.0.1:${port}/api/health/ready`)) !== 200) await wait(20);
  process.kill(process.pid, 'SIGTERM');
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
