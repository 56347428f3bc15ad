import { isatty } from 'node:tty';
import type * as Prompts from '@inquirer/prompts';
import type { Io } from '../view/output.js';
import { Interrupted, UsageError } from '../view/exit.js';

export interface Choice<T> {
  name: string;
  value: T;
  description?: string;
}

/**
 * Questions to a person. Each throws a UsageError without a terminal, so that nothing waits for input
 * in CI.
 */
export interface Prompt {
  /** True if a person is there to answer. */
  readonly possible: boolean;
  /** `missing` completes the usage error, for example `the argument <name> is missing`. */
  text(
    question: string,
    missing: string,
    options?: { default?: string; check?: (answer: string) => true | string },
  ): Promise<string>;
  /** Not echoed; asked again while `check` answers what is wrong. */
  secret(question: string, missing: string, options?: { check?: (answer: string) => true | string }): Promise<string>;
  choose<T>(question: string, missing: string, choices: readonly Choice<T>[]): Promise<T>;
  yes(question: string, missing: string, fallback?: boolean): Promise<boolean>;
}

/** Asks on stderr, and only when stdin and stderr are a terminal, `--no-input` was not given and CI is not set. */
export function openPrompt(io: Io, allowed: boolean): Prompt {
  const inCi = Boolean(io.env['CI']) && io.env['CI'] !== 'false';
  const possible = allowed && !inCi && Boolean(io.stdin.isTTY) && Boolean(io.stderr.isTTY);

  const ask = async <T>(
    missing: string,
    question: (prompts: typeof Prompts, context: PromptContext) => Promise<T>,
  ): Promise<T> => {
    if (!possible) throw new UsageError(sentence(missing));
    const prompts = await import('@inquirer/prompts');
    const left = new AbortController();
    const leave = (): void => left.abort();
    const onKey = (_text: unknown, key?: { ctrl?: boolean; name?: string }): void => {
      if (key?.ctrl && key.name === 'd') leave();
    };
    outliveTerminal(io.stdin);
    // The library takes the end of the input for no answer at all: the process would end as if all were done.
    io.stdin.on('keypress', onKey).once('end', leave);
    try {
      const signal = AbortSignal.any([io.stop, left.signal]);
      return await question(prompts, { input: io.stdin, output: io.stderr, signal });
    } catch (error) {
      if (error instanceof Error && /^(ExitPrompt|AbortPrompt|CancelPrompt)Error$/.test(error.name)) {
        throw new Interrupted();
      }
      throw error;
    } finally {
      io.stdin.off('keypress', onKey).off('end', leave);
    }
  };

  return {
    possible,
    text: (message, missing, options = {}) =>
      ask(missing, ({ input }, context) =>
        input(
          {
            message,
            default: options.default,
            validate: options.check ?? ((answer) => answer.trim() !== '' || 'Please type something.'),
          },
          context,
        ),
      ),
    secret: (message, missing, options = {}) =>
      ask(missing, ({ password }, context) => password({ message, mask: true, validate: options.check }, context)),
    choose: (message, missing, choices) =>
      ask(missing, ({ select }, context) => select({ message, choices: [...choices] }, context)),
    yes: (message, missing, fallback = false) =>
      ask(missing, ({ confirm }, context) => confirm({ message, default: fallback }, context)),
  };
}

/**
 * A terminal that was closed can no longer be switched back from asking; Node's readline takes that for a failure of
 * the program, which would end here before it has recorded how its act ended.
 */
function outliveTerminal(stdin: Io['stdin'] & { fd?: number; setRawMode?: (isRaw: boolean) => unknown }): void {
  const { fd, setRawMode } = stdin;
  if (fd === undefined || setRawMode === undefined || Object.hasOwn(stdin, 'setRawMode')) return;
  stdin.setRawMode = (isRaw) => (isatty(fd) ? setRawMode.call(stdin, isRaw) : stdin);
}

interface PromptContext {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
  signal: AbortSignal;
}

function sentence(text: string): string {
  return `${text[0]!.toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? '' : '.'}`;
}
