// Builds the client that the service hands out: two modules, those that they load when they are needed, their types, and
// a package of all. Throws when a module has grown beyond its limit.
import { createRequire } from 'node:module';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import ts from 'typescript';

const HERE = import.meta.dirname;
const OUT = join(HERE, '..', '..', 'dist', 'client');
const { version, license } = createRequire(import.meta.url)('../../package.json');

/** Bytes of a module after `gzip -9`. */
const LIMITS = {
  core: 6 * 1024,
  client: 9.5 * 1024,
  'client-accounts': 4 * 1024,
  'client-tabs': 1.25 * 1024,
  'client-react': 1024,
  'client-rxdb': 2 * 1024,
  'client-tanstack': 2 * 1024,
  'client-offline': 8 * 1024,
};

/** What is built on the client, most of it for another library, each an entry point of the package. */
const ADAPTERS = ['offline', 'react', 'rxdb', 'tanstack'];
/** Of the application, not of the client. */
const PEERS = { react: '>=18', rxdb: '>=17', '@tanstack/db': '>=0.15' };

/** In the order in which they build on each other. */
const CORE = [
  'api-error',
  'platform',
  'connection',
  'filter-suffixes',
  'project',
  'query',
  'operators',
  'collection',
  'batch',
  'auth/factors',
  'auth/verify',
  'auth/invites',
  'auth/linking',
  'auth/sessions',
  'auth/kept-session',
  'auth/auth',
  'files',
  'mail',
  'core',
];
/** With what its declarations name. */
const OFFLINE = ['offline/change', 'offline/replica', 'offline/sender', 'client-offline'];
const WITH_STREAMS = [...CORE, 'stream', 'document-set', 'follow', 'client'];

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
const files = {
  'client.js': await bundle('client', 'esm'),
  'client.cjs': await bundle('client', 'cjs'),
  'client.d.ts': declare(WITH_STREAMS, ['createClient', 'ApiError']),
  'client-accounts.js': await bundle('client-accounts', 'esm', 'auth'),
  'client-tabs.js': await bundle('client-tabs', 'esm'),
  'core.js': await bundle('core', 'esm'),
  'core.cjs': await bundle('core', 'cjs'),
  'core.d.ts': declare(CORE, ['createCoreClient', 'ApiError']),
};
for (const name of ADAPTERS) {
  files[`client-${name}.js`] = await bundle(`client-${name}`, 'esm');
  files[`client-${name}.d.ts`] = declareAlone(`client-${name}`);
}
files['client-offline.d.ts'] = declare(OFFLINE, ['openOfflineStore']);
// TypeScript takes the declarations of a CommonJS module from a file of their own.
for (const name of ['client', 'core']) files[`${name}.d.cts`] = files[`${name}.d.ts`];
files['package.json'] = describe();
for (const [name, text] of Object.entries(files)) writeFileSync(join(OUT, name), text);
writeFileSync(join(OUT, 'client.tgz'), pack());

async function bundle(name, format, folder = '') {
  const made = await build({
    // The part without streams has an export for the whole client that nobody else needs.
    ...(name === 'core'
      ? { stdin: { contents: "export { ApiError, createCoreClient } from './core.js'", resolveDir: HERE } }
      : { entryPoints: [join(HERE, folder, `${name}.ts`)] }),
    bundle: true,
    minify: true,
    format,
    // A CommonJS module holds it.
    external: format === 'esm' ? ['./client-accounts.js', './client-tabs.js', ...Object.keys(PEERS)] : [],
    metafile: true,
    target: 'es2022',
    write: false,
    legalComments: 'none',
    banner: { js: `/* bsvc client ${version}, ${license} */` },
  });
  const { text } = made.outputFiles[0];
  const isSecondClass =
    name.startsWith('client-') && Object.keys(made.metafile.inputs).some((path) => path.endsWith('api-error.ts'));
  if (isSecondClass) throw new Error(`${name}.js contains a second class of errors: it may only import types`);
  if (format === 'cjs') return text;
  const bytes = gzipSync(text, { level: 9 }).length;
  if (bytes > LIMITS[name]) throw new Error(`the client's ${name}.js has ${bytes} bytes, more than ${LIMITS[name]}`);
  console.log(`dist/client/${name}.js: ${bytes} of ${LIMITS[name]} bytes (gzip)`);
  return text;
}

/** The declarations of several modules as those of one: `roots`, and those that they name. */
function declare(modules, roots) {
  const declarations = new Map();
  for (const name of modules) {
    const file = ts.createSourceFile(`${name}.ts`, declarationsOf(name), ts.ScriptTarget.ES2022);
    for (const statement of file.statements) {
      if (statement.name) declarations.set(statement.name.text, statement.getFullText(file).trim());
    }
  }
  const met = new Set();
  const meet = (name) => {
    const text = declarations.get(name);
    if (text === undefined || met.has(name)) return;
    met.add(name);
    for (const [word] of text.replace(/\/\*\*[^]*?\*\//g, '').matchAll(/[A-Za-z]\w*/g)) meet(word);
  };
  roots.forEach(meet);
  const shown = [...declarations]
    .filter(([name]) => met.has(name))
    .map(([, text]) => text.replace(/^(interface|type)/m, 'export $1'));
  return `/* bsvc client ${version}, ${license} */\n\n${shown.join('\n\n')}\n`;
}

/** The declarations of a module that is built on the client's: it imports those it names from there. */
function declareAlone(name) {
  const declared = declarationsOf(name)
    .replace(/export \{ \w+ \} from '\.\/([\w-]+)\.js';/g, (_, module) => declarationsOf(module).trim())
    .replace(/from '\.\/[\w-]+\.js'/g, "from './client.js'");
  return `/* bsvc client ${version}, ${license} */\n\n${declared}`;
}

function declarationsOf(name) {
  const path = join(HERE, `${name}.ts`);
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, strict: true };
  return ts.transpileDeclaration(readFileSync(path, 'utf8'), { fileName: path, compilerOptions }).outputText;
}

function entryPoint(name) {
  return {
    import: { types: `./${name}.d.ts`, default: `./${name}.js` },
    require: { types: `./${name}.d.cts`, default: `./${name}.cjs` },
  };
}

/** The package.json of the client. */
function describe() {
  const about = {
    name: '@bsvc/client',
    version,
    description: 'The client of a bsvc server.',
    license,
    type: 'module',
    sideEffects: false,
    engines: { node: '>=20' },
    exports: {
      '.': entryPoint('client'),
      './core': entryPoint('core'),
      ...Object.fromEntries(
        ADAPTERS.map((name) => [
          `./${name}`,
          { import: { types: `./client-${name}.d.ts`, default: `./client-${name}.js` } },
        ]),
      ),
    },
    types: './client.d.ts',
    peerDependencies: PEERS,
    peerDependenciesMeta: Object.fromEntries(Object.keys(PEERS).map((name) => [name, { optional: true }])),
  };
  return `${JSON.stringify(about, null, 2)}\n`;
}

/** A package of npm; the same files give the same bytes. */
function pack() {
  const entries = Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1));
  const tar = Buffer.concat([
    ...entries.flatMap(([name, text]) => tarEntry(`package/${name}`, Buffer.from(text))),
    Buffer.alloc(1024),
  ]);
  const packed = gzipSync(tar, { level: 9 });
  // The system that packed it.
  packed[9] = 255;
  return packed;
}

/** A file as ustar has it, with neither owner nor time. */
function tarEntry(name, bytes) {
  const head = Buffer.alloc(512);
  const octal = (value, length) => `${value.toString(8).padStart(length - 1, '0')}\0`;
  head.write(name, 0);
  head.write(octal(0o644, 8), 100);
  head.write(octal(0, 8), 108);
  head.write(octal(0, 8), 116);
  head.write(octal(bytes.length, 12), 124);
  // npm refuses nothing older, but some tools take 0 for a mistake: 1985-10-26, as npm itself writes.
  head.write(octal(499_162_500, 12), 136);
  head.write('        ', 148);
  head.write('0', 156);
  head.write('ustar\x0000', 257, 'latin1');
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return [head, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)];
}
