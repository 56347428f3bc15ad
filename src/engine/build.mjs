// Builds `dist`, which the package has: the engine, what it starts as a thread or a process, and their types.
import { execFileSync } from 'node:child_process';
import { copyFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { ENTRIES } from './entries.mjs';

const HERE = import.meta.dirname;
const ROOT = join(HERE, '../..');
const OUT = join(HERE, 'dist');

rmSync(OUT, { recursive: true, force: true });
await build({
  absWorkingDir: HERE,
  entryPoints: { index: 'index.ts', ...ENTRIES },
  outdir: OUT,
  bundle: true,
  splitting: true,
  platform: 'node',
  target: 'node20.20',
  format: 'esm',
  packages: 'external',
  logLevel: 'warning',
});
const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript-native/package.json')), 'bin/tsc');
execFileSync(process.execPath, [compiler, '-p', HERE], { stdio: 'inherit' });
copyFileSync(join(ROOT, 'LICENSE'), join(OUT, 'LICENSE'));
