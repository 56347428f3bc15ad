import { Writable } from 'node:stream';
import { COMMANDS } from './commands/index.js';
import { run } from './run.js';
import type { CommandNode } from './shell/command.js';

/** The texts of `--help` by the words before it: the build keeps them, so that nothing is loaded to show one. */
export async function listHelpTexts(): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const words of [[], ...listWords(COMMANDS)]) texts.set(['bsvc', ...words].join(' '), await helpOf(words));
  return texts;
}

function listWords(nodes: readonly CommandNode[], before: readonly string[] = []): string[][] {
  return nodes.flatMap(({ name, commands }) => {
    const words = [...before, name];
    return [words, ...(commands ? listWords(commands, words) : [])];
  });
}

async function helpOf(words: readonly string[]): Promise<string> {
  let text = '';
  const stdout = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  const io = {
    stdin: process.stdin,
    stdout,
    stderr: stdout,
    env: {},
    cwd: process.cwd(),
    stop: new AbortController().signal,
  };
  const exitCode = await run([...words, '--help'], io);
  if (exitCode !== 0) throw new Error(`"${words.join(' ')} --help" failed: ${text}`);
  return text;
}
