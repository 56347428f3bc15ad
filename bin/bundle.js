const { readFileSync, writeSync } = require('node:fs');
const { createRequire } = require('node:module');
const { join } = require('node:path');
const { setFlagsFromString } = require('node:v8');
const { Script } = require('node:vm');
const { brotliDecompressSync } = require('node:zlib');

// V8 learns where long-lived objects come from, and puts what the same code makes later among the old ones at once. A
// start makes what lives for ever with the code that every request runs: a sixth of a request's processor time went
// into collecting its objects among the old ones. What is compiled is bound to this flag.
setFlagsFromString('--no-allocation-site-pretenuring');

const DIST = join(__dirname, '../dist');

/** Commands that need the server, or every other command: they run the whole script, others one of half its size. */
const WHOLE_COMMANDS = ['serve', 'worker', 'generate', 'completion'];

/**
 * The built command line as a command line needs it, compiled and not yet run. What was compiled at the build is taken
 * from a `.cache`; V8 refuses it when another version of Node made it, which costs a start time and nothing else.
 *
 * @param {readonly string[]} words
 */
function compileBundle(words) {
  const name = WHOLE_COMMANDS.some((command) => words.includes(command)) ? 'main' : 'commands';
  const whole = join(DIST, 'main.js');
  const named = join(DIST, `${name}.js`);
  const built = readIfThere(named);
  const file = built ? named : whole;
  const cache = file.replace(/js$/, 'cache');
  // A package has one script for all commands, compressed. The build writes ASCII alone.
  const source = (built ?? brotliDecompressSync(readFileSync(`${whole}.br`))).toString('latin1');
  const script = new Script(source, { filename: file, cachedData: readIfThere(cache) });
  return { script, cache, run: () => script.runInThisContext()(createRequire(file), file) };
}

/**
 * Prints the help of a command as the build has kept it, if that is what is asked for; false if not.
 *
 * @param {readonly string[]} words
 */
function printHelp(words) {
  const name = words.slice(0, -1);
  if (!['--help', '-h'].includes(words.at(-1) ?? '') || !name.every((word) => /^[a-z][a-z-]*$/.test(word)))
    return false;
  const text = readIfThere(join(DIST, 'help', `${['bsvc', ...name].join(' ')}.txt`));
  if (!text) return false;
  let written = 0;
  try {
    while (written < text.length) written += writeSync(1, text, written);
    return true;
  } catch (error) {
    // Whoever looks at the first lines only is content; everything else is told by the command line itself.
    return error.code === 'EPIPE' || written > 0;
  }
}

/** @param {string} file */
function readIfThere(file) {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

module.exports = { WHOLE_COMMANDS, compileBundle, printHelp };
