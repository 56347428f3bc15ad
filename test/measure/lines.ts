import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

/** Made by `npm run generate`, and no part of the repository. */
export const GENERATED = 'src/console/api-routes.ts';
/** With the engine, whose package they are of, and counted as tests. */
export const ENGINE_TESTS = 'src/engine/test/';
/** What `npm pack` of the engine has built. */
export const ENGINE_BUILT = 'src/engine/dist/';
const SOURCE = /\.(ts|tsx|mjs)$/;

export interface Part {
  lines: number;
  files: number;
}

/** Lines and files written by hand, by part: a folder of `src`, a feature, the command line, a folder of tests. */
export function countParts(): Map<string, Part> {
  const parts = new Map<string, Part>();
  for (const path of ['src', 'cli', 'test'].flatMap(listSource)) {
    if (path === GENERATED || path.startsWith(ENGINE_BUILT)) continue;
    const name = partOf(path);
    const part = parts.get(name) ?? { lines: 0, files: 0 };
    parts.set(name, { lines: part.lines + linesOf(path), files: part.files + 1 });
  }
  return new Map([...parts].sort(([a], [b]) => a.localeCompare(b)));
}

/** The sum of the parts whose names begin so. */
export function sumParts(parts: ReadonlyMap<string, Part>, begins: string): Part {
  const sum = { lines: 0, files: 0 };
  for (const [name, { lines, files }] of parts) {
    if (name !== begins && !name.startsWith(`${begins}/`)) continue;
    sum.lines += lines;
    sum.files += files;
  }
  return sum;
}

function partOf(path: string): string {
  const folders = path.split('/').slice(0, -1);
  if (path.startsWith(ENGINE_TESTS)) return 'test/engine';
  if (folders[0] === 'cli') return 'cli';
  return folders.slice(0, folders[1] === 'features' && folders[0] === 'src' ? 3 : 2).join('/');
}

function linesOf(path: string): number {
  return readFileSync(join(ROOT, path), 'utf8').split('\n').length - 1;
}

function listSource(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && SOURCE.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1));
}
