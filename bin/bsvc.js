#!/bin/sh
':' //; exec node -- "$0" "$@"
// To the shell the line above is a command, to Node a word and a comment: Node 20 takes its own --env-file from anywhere before a "--".
// Checked before anything modern is loaded, so that an old Node gets a sentence instead of a syntax error.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 20)) {
  console.error(
    `bsvc needs Node.js 20.20 or newer; this is ${process.versions.node}. See https://nodejs.org/en/download`,
  );
  process.exit(1);
}
const { compileBundle, printHelp } = require('./bundle.js');
const words = process.argv.slice(2);
if (!printHelp(words)) compileBundle(words).run();
