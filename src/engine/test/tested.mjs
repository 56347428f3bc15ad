// Whether the engine's deep tests have passed with the files that are here: `npm run test:engine` records it, CI asks.
// Whatever differs, a packaged dependency or the version of Node.js included, has them run.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

const ENGINE = join(import.meta.dirname, '..');
const RECORD = join(import.meta.dirname, 'tested.txt');

if (process.argv[2] === 'record') {
  writeFileSync(RECORD, `${fingerprint()}\n`);
} else {
  const isTested = readRecord() === fingerprint();
  console.log(`The engine's deep tests ${isTested ? 'passed with these files and are left out' : 'run'}.`);
  process.exitCode = isTested ? 0 : 1;
}

/** Of the engine's files, its tests among them, of all packages, and of what runs them. */
function fingerprint() {
  const hash = createHash('sha256');
  hash.update(`${process.platform} ${process.arch} ${process.version.split('.')[0]}\0`);
  for (const path of [...listFiles(), join(ENGINE, '..', '..', 'package-lock.json')]) {
    const text = readFileSync(path);
    hash.update(`${relative(ENGINE, path).split(sep).join('/')} ${text.length}\0`).update(text);
  }
  return hash.digest('hex');
}

function listFiles() {
  return readdirSync(ENGINE, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter(
      (path) => path !== RECORD && !path.endsWith('.md') && !/^(dist|node_modules)\b/.test(relative(ENGINE, path)),
    )
    .sort();
}

function readRecord() {
  try {
    return readFileSync(RECORD, 'utf8').trim();
  } catch {
    return null;
  }
}
