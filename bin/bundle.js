import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';

const FILE = fileURLToPath(new URL('../dist/main.js', import.meta.url));

/**
 * The built command line, compiled and not yet run. What was compiled at the build is taken from `dist/main.cache`; V8
 * refuses it when another version of Node made it, which costs a start time and nothing else.
 */
export function compileBundle() {
  // The build writes ASCII alone.
  const source = readFileSync(FILE, 'latin1');
  const script = new Script(source, { filename: FILE, cachedData: readCache() });
  return { script, run: () => script.runInThisContext()(createRequire(FILE), FILE) };
}

function readCache() {
  try {
    return readFileSync(fileURLToPath(new URL('../dist/main.cache', import.meta.url)));
  } catch {
    return undefined;
  }
}
