// Makes `dist/package`, what users install, of what `npm run build` has built, and packs it as `dist/bsvc-<version>.tgz`.
// All packages are in it, as one script each, so that an installation loads nothing but the native part of lmdb, compiles
// nothing and gets the very versions that were tested. `node src/packaging/package.mjs <folder>` writes both there.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { build } from 'esbuild';
import { EXTERNAL, NATIVE_PARTS } from './external.mjs';

const ROOT = join(import.meta.dirname, '../..');
const DIST = join(ROOT, 'dist');
const OUT = join(resolve(process.argv[2] ?? DIST), 'package');
const about = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages;
const versionOf = (name) => lock[`node_modules/${name}`].version;

/** Too large for what it is for, an import from another service: whoever wants that installs it beside. */
const LEFT_OUT = 'libsql';
const WITHIN = EXTERNAL.filter((name) => name !== LEFT_OUT);

/** Files inside a package that the source asks for: they share the package's own script. */
const INNER_FILES = {
  mongodb: ['lib/cmap/connection.js', 'lib/error.js', 'lib/bulk/common.js'],
  '@simplewebauthn/server': ['helpers'],
};

rmSync(OUT, { recursive: true, force: true });
for (const path of ['bin', 'templates', 'LICENSE', 'README.md'])
  cpSync(join(ROOT, path), join(OUT, path), { recursive: true });
// Every command runs by the script of all of them, and compiled code fits no other version of Node.
const built = readdirSync(DIST).filter((path) => !/^(main|commands|package|bsvc-.*)\b|\.cache$/.test(path));
for (const path of built) cpSync(join(DIST, path), join(OUT, 'dist', path), { recursive: true });
writeFileSync(join(OUT, 'dist', 'main.js.br'), compress(readFileSync(join(DIST, 'main.js'))));
await Promise.all(WITHIN.map(bundlePackage));
cpSync(join(ROOT, 'node_modules/bcrypt/prebuilds'), join(OUT, 'node_modules/bcrypt/prebuilds'), { recursive: true });
writeFileSync(join(OUT, 'LICENSES.txt'), listLicenses());
writeFileSync(join(OUT, 'package.json'), JSON.stringify(describePackage(), null, 2));
execFileSync('npm', ['pack', '--silent', '--pack-destination', '..'], {
  cwd: OUT,
  stdio: ['ignore', 'ignore', 'inherit'],
});

/** One script of a package and all that it needs, in its own folder. */
async function bundlePackage(name) {
  const folder = join(OUT, 'node_modules', name);
  const inner = INNER_FILES[name] ?? [];
  const places = inner.map((path) => `${JSON.stringify(path)}: require('${name}/${path}')`).join(', ');
  await build({
    absWorkingDir: ROOT,
    stdin: {
      contents: `module.exports = require('${name}');${inner.length > 0 ? ` module.exports.innerFiles = { ${places} };` : ''}`,
      resolveDir: ROOT,
    },
    outfile: join(folder, 'index.js'),
    bundle: true,
    platform: 'node',
    target: 'node20.20',
    format: 'cjs',
    minify: true,
    legalComments: 'none',
    logLevel: 'error',
    external: EXTERNAL.filter((other) => other !== name),
  });
  for (const path of inner) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    const up = `./${'../'.repeat(path.split('/').length - 1)}`;
    writeFileSync(
      join(folder, path.replace(/(\.js)?$/, '.js')),
      `module.exports = require('${up}index.js').innerFiles['${path}'];\n`,
    );
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version: versionOf(name), main: 'index.js' }));
}

/** The highest quality takes ten times as long and saves a tenth. */
function compress(bytes) {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 24 };
  return brotliCompressSync(bytes, { params });
}

function describePackage() {
  const { name, version, description, license, type, bin, engines } = about;
  return {
    ...{ name, version, description, license, type, bin, engines },
    dependencies: Object.fromEntries(WITHIN.map((each) => [each, versionOf(each)])),
    bundleDependencies: WITHIN,
    // Each names the platform that it is for, and npm takes the one that fits.
    optionalDependencies: Object.fromEntries(NATIVE_PARTS.map((each) => [each, versionOf('lmdb')])),
    peerDependencies: { [LEFT_OUT]: versionOf(LEFT_OUT) },
    peerDependenciesMeta: { [LEFT_OUT]: { optional: true } },
  };
}

/** What the licenses of all packages inside ask for: their text beside the copy. */
function listLicenses() {
  // The packages of the console are built into its pages.
  const ofConsole =
    /^node_modules\/(@codemirror|@lezer|@marijn|@preact|preact|uplot|papaparse|crelt|style-mod|w3c-keyname)/;
  const byText = new Map();
  for (const [path, { version, dev, license }] of Object.entries(lock)) {
    const folder = join(ROOT, path);
    if (!path.startsWith('node_modules/') || (dev && !ofConsole.test(path)) || !existsSync(folder)) continue;
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    const text = file ? readFileSync(join(folder, file), 'utf8').trim() : `License: ${license}`;
    byText.set(text, [...(byText.get(text) ?? []), `${path.replace(/^.*node_modules\//, '')} ${version}`]);
  }
  return [...byText].map(([text, names]) => `${names.join(', ')}\n\n${text}\n`).join(`\n${'-'.repeat(80)}\n\n`);
}
