// The first script of the executable, which is Node.js with the packed files inside. Its first start unpacks them into a
// cache folder. It is also the program that the service starts its helper processes with, as it would start Node.js with
// a script: `bsvc <script of the folder> …` runs that script.
const { lstatSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { homedir, tmpdir } = require('node:os');
const { dirname, isAbsolute, join, sep } = require('node:path');
const { pathToFileURL } = require('node:url');
const { getAsset } = require('node:sea');
const { constants, runInThisContext } = require('node:vm');
const { brotliDecompressSync } = require('node:zlib');

/** Version and checksum of what is inside: no other executable has it. */
const NAME = getAsset('name', 'utf8');
const FULL = new Set(['ENOSPC', 'EDQUOT']);

// As Node would have them: the path of the script after that of the program.
const [program, , ...words] = process.argv;
const asked = words[0];
if (asked !== undefined && isAbsolute(asked) && asked.split(sep).includes(NAME)) {
  // Nothing else is looked at: a process of own code may read that script alone.
  process.argv = [program, ...words];
  importScript(pathToFileURL(asked).href).catch((error) => {
    console.error(error);
    process.exit(1);
  });
} else {
  const script = join(findFolder(), 'bin', 'bsvc.js');
  process.argv = [program, script, ...words];
  createRequire(script)(script);
}

/** A script inside of an executable has no import() by itself. */
function importScript(url) {
  const { emitWarning } = process;
  // Node 20 remarks that this is experimental.
  process.emitWarning = () => undefined;
  try {
    const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
    return runInThisContext('(url) => import(url)', { importModuleDynamically })(url);
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** The folder of the unpacked files, in the first place that this user can write to and nobody else can. */
function findFolder() {
  const problems = [];
  for (const place of listPlaces()) {
    try {
      return unpackOnce(place);
    } catch (error) {
      problems.push(`  ${place}: ${FULL.has(error.code) ? 'there is no space left' : error.message}`);
    }
  }
  console.error(
    `bsvc: The files inside of this executable can be unpacked nowhere. Set XDG_CACHE_HOME to a folder of this user with 50 MB of space.\n${problems.join('\n')}`,
  );
  process.exit(1);
}

function listPlaces() {
  const { XDG_CACHE_HOME: cache } = process.env;
  let home = null;
  try {
    home = homedir();
  } catch {
    // A user without an entry and without HOME.
  }
  return [
    ...(cache && isAbsolute(cache)
      ? [join(cache, 'bsvc')]
      : home && isAbsolute(home)
        ? [join(home, '.cache', 'bsvc')]
        : []),
    join(tmpdir(), `bsvc-${process.getuid()}`),
  ];
}

function unpackOnce(place) {
  mkdirSync(place, { recursive: true, mode: 0o700 });
  for (const folder of [dirname(place), place]) requireOwn(folder);
  const folder = join(place, NAME);
  if (isThere(folder)) {
    requireOwn(folder);
    return folder;
  }
  const part = join(place, `${NAME}.part-${process.pid}`);
  try {
    unpack(part);
    renameSync(part, folder);
  } catch (error) {
    rmSync(part, { recursive: true, force: true });
    // Another start was sooner.
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    requireOwn(folder);
  }
  removeParts(place);
  return folder;
}

/** Code is taken from there: whoever else could write to it would run theirs as this user. */
function requireOwn(folder) {
  const { uid, mode } = statSync(folder);
  const isShared = (mode & 0o022) !== 0 && (mode & 0o1000) === 0;
  // A link leads elsewhere whenever its owner wants.
  const isOfOthers = [uid, lstatSync(folder).uid].some((owner) => owner !== process.getuid() && owner !== 0);
  if (isOfOthers || isShared) {
    throw new Error(`${folder} belongs to another user or can be written by others`);
  }
}

function isThere(folder) {
  return statSync(folder, { throwIfNoEntry: false }) !== undefined;
}

/** Each file is on the disk before the folder has its name: after a power cut it is whole or not there. */
function unpack(folder) {
  const packed = brotliDecompressSync(Buffer.from(getAsset('files')));
  const listBytes = packed.readUInt32LE(0);
  let at = 4 + listBytes;
  for (const [path, bytes, mode] of JSON.parse(packed.toString('utf8', 4, at))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, path), packed.subarray(at, at + bytes), { mode, flush: true });
    at += bytes;
  }
}

/** What was left by starts that were killed. */
function removeParts(place) {
  for (const name of readdirSync(place)) {
    const pid = Number(/\.part-(\d+)$/.exec(name)?.[1] ?? 0);
    if (pid !== 0 && !isAlive(pid)) rmSync(join(place, name), { recursive: true, force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
