import { spawnSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { buildLargeProject } from '../helpers/large-project.js';
import { openTempDir } from '../helpers/temp-dir.js';

/*
 * What the generated types of a large project cost the compiler: processor time of a whole run of tsc, from its start,
 * for a program that calls every collection, for the same one without the calls, and for an empty one. The client's
 * declarations are those of the last build.
 *
 * npm run bench compile-time -- 5        runs of each
 */

const RUNS = Number(process.argv[2] ?? 5);
const CLIENT = join(import.meta.dirname, '..', '..', 'dist', 'client', 'client.d.ts');
const TSC = createRequire(import.meta.url).resolve('typescript/lib/tsc.js');
const OPTIONS = {
  strict: true,
  // As `tsc --init` writes it.
  skipLibCheck: true,
  noEmit: true,
  target: 'es2022',
  module: 'esnext',
  moduleResolution: 'bundler',
  lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'],
  types: [],
};

const { types, head, calls } = await buildLargeProject();
const programs = { empty: 'export {};\n', 'types and client': head, 'and two calls for each collection': head + calls };
const dir = await openTempDir();
try {
  copyFileSync(CLIENT, join(dir.path, 'client.d.ts'));
  writeFileSync(join(dir.path, 'project.d.ts'), types);
  writeFileSync(join(dir.path, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, files: ['program.ts'] }));
  const seconds = new Map(Object.keys(programs).map((name) => [name, [] as number[]]));
  for (let run = 0; run < RUNS; run++) {
    for (const [name, text] of Object.entries(programs)) {
      writeFileSync(join(dir.path, 'program.ts'), text);
      seconds.get(name)!.push(compileOnce(dir.path));
    }
  }
  console.log(
    `60 collections of 25 fields, TypeScript ${ts.version}, ${RUNS} runs of each, load ${loadavg()[0]!.toFixed(1)}`,
  );
  for (const [name, all] of seconds) {
    const [least, median] = [0, Math.floor(RUNS / 2)].map((at) => all.sort((a, b) => a - b)[at]!.toFixed(2));
    console.log(`${name}: ${median} s of processor time in the median, ${least} s at least`);
  }
} finally {
  await dir.remove();
}

/** Seconds of processor time; throws when the program does not compile. */
function compileOnce(folder: string): number {
  const script = `process.on('exit', () => console.error(JSON.stringify(process.cpuUsage()))); require(${JSON.stringify(TSC)})`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', script], { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(stdout + stderr);
  const { user, system } = JSON.parse(stderr) as NodeJS.CpuUsage;
  return (user + system) / 1e6;
}
