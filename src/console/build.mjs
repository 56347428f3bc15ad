// Builds `dist/console`: hashed names, code that is loaded when it is wanted, and limits of size that hold.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const OUT = join('dist', 'console');
/** Kilobytes as they are sent (gzip). */
const LIMITS = { first: 75, editor: 120, style: 9 };

const size = (name) => gzipSync(readFileSync(join(OUT, name)), { level: 9 }).length / 1024;

/** The output and everything that it loads at once. */
function loaded(outputs, path, found = new Set()) {
  if (found.has(path)) return found;
  found.add(path);
  for (const { path: next, kind } of outputs[path].imports)
    if (kind === 'import-statement') loaded(outputs, next, found);
  return found;
}

/**
 * A package in the old form of modules, with what esbuild needs to read that form inside of it: in a chunk of its own,
 * that would be loaded before the first script.
 */
const papaparseWhole = {
  name: 'papaparse-whole',
  setup({ onLoad }) {
    onLoad({ filter: /node_modules[\\/]papaparse[\\/]/ }, async ({ path }) => {
      const { outputFiles } = await build({ entryPoints: [path], bundle: true, format: 'esm', write: false });
      return { contents: outputFiles[0].text };
    });
  },
};

/** The command of each route: the command line's own list, without the commands themselves. */
async function listRouteCommands() {
  const outfile = join(OUT, 'route-commands.mjs');
  await build({
    entryPoints: ['cli/route-commands.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'warning',
    plugins: [
      {
        name: 'no-commands',
        setup: ({ onResolve }) =>
          onResolve({ filter: /./ }, ({ kind, path }) => (kind === 'dynamic-import' ? { path, external: true } : null)),
      },
    ],
  });
  const made = await import(new URL(`../../${outfile}`, import.meta.url).href);
  rmSync(outfile);
  return made.listRouteCommands();
}

export async function buildConsole() {
  mkdirSync(OUT, { recursive: true });
  const commands = JSON.stringify(await listRouteCommands());
  const { metafile } = await build({
    entryPoints: { main: 'src/console/main.tsx', style: 'src/console/styles/style.css' },
    outdir: OUT,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    define: { ROUTE_COMMANDS: JSON.stringify(commands) },
    plugins: [papaparseWhole],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    entryNames: '[name]-[hash]',
    chunkNames: 'part-[hash]',
    metafile: true,
    legalComments: 'none',
    logLevel: 'warning',
    tsconfig: 'src/console/tsconfig.json',
  });
  const { outputs } = metafile;
  const paths = Object.keys(outputs);
  const of = (entry) => paths.find((path) => outputs[path].entryPoint === entry);
  const names = (set) => [...set].map((path) => path.split('/').at(-1));
  const main = loaded(outputs, of('src/console/main.tsx'));
  const editor = [...loaded(outputs, of('src/console/parts/code-mirror.ts'))].filter((path) => !main.has(path));
  const style = names([of('src/console/styles/style.css')])[0];
  const sum = (list) => names(list).reduce((all, name) => all + size(name), 0);
  const sizes = { first: sum(main), editor: sum(editor), style: size(style) };
  for (const [part, kilobytes] of Object.entries(sizes)) {
    if (kilobytes > LIMITS[part])
      throw new Error(`the console's ${part} load is ${kilobytes.toFixed(1)} KB gzip: more than ${LIMITS[part]}`);
  }
  // The browser would hear of others when this one has come, and a page that begins would wait twice.
  if (main.size > 1) throw new Error(`the console's first script loads others: ${names(main).join(', ')}`);
  const [script] = names(main);
  const page = readFileSync('src/console/index.html', 'utf8').replace('{{style}}', style).replace('{{script}}', script);
  writeFileSync(join(OUT, 'index.html'), page);
  return { sizes, files: readdirSync(OUT).length };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(JSON.stringify(await buildConsole()));
