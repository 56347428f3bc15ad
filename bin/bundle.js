import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';

// V8 learns where long-lived objects come from, and puts what the same code makes later among the old ones at once. A
// start makes what lives for ever with the code that every request runs: a sixth of a request's processor time went
// into collecting its objects among the old ones. What is compiled is bound to this flag.
setFlagsFromString('--no-allocation-site-pretenuring');

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
