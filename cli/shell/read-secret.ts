import { checkNewPassword } from '../../src/features/users/credentials.js';
import { Problems } from '../../src/features/documents/reply/problems.js';
import { readTextStream } from '../../src/text.js';
import type { SecretSource } from './command.js';
import type { Context } from './context.js';
import { UsageError } from '../view/exit.js';

const MAX_SECRET_BYTES = 64 * 1024;

/**
 * The secret from standard input, from the named environment variable or from a hidden prompt. One trailing line feed
 * of standard input is dropped.
 */
export async function readSecret(context: Context, source: SecretSource, question: string): Promise<string> {
  const { option, stdin, env } = source;
  if (stdin && env !== undefined) throw new UsageError(`Give either ${option}-stdin or ${option}-env, not both.`);
  if (env !== undefined) {
    const found = context.io.env[env];
    if (!found) throw new UsageError(`${option}-env names ${env}, but that environment variable is not set.`);
    return found;
  }
  if (!stdin) {
    return context.ask.secret(`${question}:`, `${question} is missing: add ${option}-stdin or ${option}-env <NAME>`);
  }
  const text = (await readTextStream(context.io.stdin, 'Standard input', MAX_SECRET_BYTES)).replace(/\r?\n$/, '');
  if (!text) throw new UsageError(`${option}-stdin was given, but standard input is empty.`);
  return text;
}

/** Reads a password that a person makes up: typed twice, and again until it is long enough. */
export async function readNewPassword(context: Context, source: SecretSource, question: string): Promise<string> {
  if (source.stdin || source.env !== undefined || !context.ask.possible) return readSecret(context, source, question);
  for (;;) {
    const password = await context.ask.secret(`${question}:`, '', {
      check: (typed) => {
        const problems = new Problems();
        checkNewPassword(typed, problems, 'It');
        return problems.summary === null || `${problems.summary}.`;
      },
    });
    if ((await context.ask.secret('Once more:', '')) === password) return password;
    // From the beginning: it may be the first one that was mistyped.
    context.out.note('The two passwords differ. Type both again, or press Ctrl-C.');
  }
}
