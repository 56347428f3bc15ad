// Makes `dist/bsvc-<version>-<platform>`, a single executable of what `npm run build` has built, with the Node.js that
// runs this: needs nothing on the machine that it is copied to. `node src/packaging/executable.mjs <folder>` writes there.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { compileBundle } from '../../bin/bundle.js';
import './package.mjs';

if (process.platform !== 'linux')
  throw new Error('Executables are made on Linux only: install the packed file instead.');

const ROOT = join(import.meta.dirname, '../..');
const DIST = join(ROOT, 'dist');
const OUT = resolve(process.argv[2] ?? DIST);
const PACKAGE = join(OUT, 'package');
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';

const { glibcVersionRuntime } = process.report.getReport().header;
const libc = glibcVersionRuntime ? 'glibc' : 'musl';
const here = `${process.platform}-${process.arch}`;

/** Native parts of this platform, for this Node.js. */
const isNativeOfOthers = (path) =>
  (/^node_modules\/bcrypt\/prebuilds\//.test(path) && !path.includes(`/prebuilds/${here}/`)) ||
  (path.endsWith('.node') && path.includes(libc === 'glibc' ? '.musl.' : '.glibc.')) ||
  (/\/node\.abi\d+\./.test(path) && !path.includes(`/node.abi${process.versions.modules}.`));

const native = `node_modules/@lmdb/lmdb-${here}`;
const files = [
  ...listFiles(PACKAGE)
    .filter((path) => path !== 'dist/main.js.br')
    .map((path) => [path, join(PACKAGE, path)]),
  ...listFiles(join(ROOT, native)).map((path) => [`${native}/${path}`, join(ROOT, native, path)]),
  ...['main', 'commands'].flatMap(listScript).map((name) => [`dist/${name}`, join(DIST, name)]),
].filter(([path]) => !isNativeOfOthers(path));

const packed = pack(files);
const name = `${version}-${createHash('sha256').update(packed).digest('hex').slice(0, 16)}`;
const place = mkdtempSync(join(tmpdir(), 'bsvc-executable-'));
const part = (name) => join(place, name);
writeFileSync(part('files'), packed);
writeFileSync(part('name'), name);
const config = {
  main: join(import.meta.dirname, 'start-executable.cjs'),
  output: part('blob'),
  disableExperimentalSEAWarning: true,
  assets: { files: part('files'), name: part('name') },
};
writeFileSync(part('json'), JSON.stringify(config));
execFileSync(process.execPath, ['--experimental-sea-config', part('json')], { stdio: 'pipe' });
const made = join(OUT, `bsvc-${version}-${here}`);
copyFileSync(process.execPath, made);
chmodSync(made, 0o755);
const { inject } = createRequire(import.meta.url)('postject');
await quietly(() => inject(made, 'NODE_SEA_BLOB', readFileSync(part('blob')), { sentinelFuse: FUSE }));
rmSync(place, { recursive: true });
console.log(made);

/** A script that commands run by, and what was compiled of it if this Node.js takes that. */
function listScript(name) {
  const { cachedDataRejected } = compileBundle([name === 'main' ? 'serve' : name]).script;
  return cachedDataRejected ? [`${name}.js`] : [`${name}.js`, `${name}.cache`];
}

function listFiles(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => lstatSync(join(folder, path)).isFile())
    .sort();
}

/** A list of paths, lengths and modes, then the files one after the other. */
function pack(files) {
  const contents = files.map(([, from]) => readFileSync(from));
  const list = files.map(([path, from], at) => [path, contents[at].length, lstatSync(from).mode & 0o755]);
  const head = Buffer.from(JSON.stringify(list));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(head.length);
  const whole = Buffer.concat([length, head, ...contents]);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 24 };
  return brotliCompressSync(whole, { params });
}

/** The tool remarks on the symbols of every Node.js, which are of no consequence. */
async function quietly(work) {
  const { warn } = console;
  console.warn = () => undefined;
  try {
    return await work();
  } finally {
    console.warn = warn;
  }
}
