import type { Command } from 'commander';
import { InvalidArgumentError, Option } from 'commander';
import type { Loss, Context } from './context.js';
import type { Result } from '../view/output.js';

/** A part of the command line that becomes one property of a command's input. */
export interface CommandParameter<T> {
  /** Never there: ties the parameter to the type of its value. */
  readonly value?: T;
  kind: 'argument' | 'option' | 'secret' | 'setting';
  /** `name` of an argument, `--plan <plan>` of an option, the environment name of a setting. */
  flags: string;
  description: string;
  /** Each occurrence adds a value. */
  repeated?: boolean;
  /** Holds a project's data: not written down in the audit log. */
  isContent?: boolean;
  /** An argument that may be left out. */
  optional?: boolean;
  choices?: readonly string[];
  /** Which setting an option stands for. */
  env?: string;
  /** Settings that a flag brings along, where nothing else sets them. */
  implies?: Readonly<Record<string, string>>;
  /** Text -> value; what it throws becomes a usage error naming the option. */
  read?: (text: string) => unknown;
  /** Asks a person for a missing argument; without it a plain question does. */
  ask?: (context: Context) => Promise<string>;
}

type Parameters = Record<string, CommandParameter<unknown>>;
type Input<P extends Parameters> = { [K in keyof P]: P[K] extends CommandParameter<infer T> ? T : never };

/** The source of a secret: `--…-stdin`, `--…-env NAME`, or neither (then it is asked for). */
export interface SecretSource {
  option: string;
  stdin: boolean;
  env?: string;
}

/** A required argument; asked for at a terminal when it is missing. */
export const argument = (
  flags: string,
  description: string,
  more: Pick<CommandParameter<string>, 'ask'> = {},
): CommandParameter<string> => ({ kind: 'argument', flags, description, ...more });

export const optionalArgument = (flags: string, description: string): CommandParameter<string | undefined> => ({
  kind: 'argument',
  flags,
  description,
  optional: true,
});

/** `--yes`: true when given. */
export const flag = (
  flags: string,
  description: string,
  more: Pick<CommandParameter<boolean>, 'implies'> = {},
): CommandParameter<boolean> => ({ kind: 'option', flags, description, ...more });

/** `--plan <plan>`: undefined when not given. */
export function option(flags: string, description: string): CommandParameter<string | undefined>;
export function option<T>(
  flags: string,
  description: string,
  read: (text: string) => T,
): CommandParameter<T | undefined>;
export function option<T>(
  flags: string,
  description: string,
  read?: (text: string) => T,
): CommandParameter<T | undefined> {
  return { kind: 'option', flags, description, ...(read && { read }) };
}

export const choice = <const T extends string>(
  flags: string,
  description: string,
  choices: readonly T[],
): CommandParameter<T | undefined> => ({ kind: 'option', flags, description, choices });

/** `--field <spec>`: any number of times. */
export function list(flags: string, description: string): CommandParameter<string[]>;
export function list<T>(flags: string, description: string, read: (text: string) => T): CommandParameter<T[]>;
export function list<T>(flags: string, description: string, read?: (text: string) => T): CommandParameter<T[]> {
  return { kind: 'option', flags, description, repeated: true, ...(read && { read }) };
}

/**
 * A secret named `password` offers `--password-stdin` and `--password-env <NAME>`, never a value on the command line.
 */
export const secret = (name: string, description: string): CommandParameter<SecretSource> => ({
  kind: 'secret',
  flags: name,
  description,
});

/**
 * `--port <port>` standing for a setting: goes into the configuration with the precedence of a flag, not into the
 * input.
 */
export const setting = (flags: string, env: string, description: string): CommandParameter<undefined> => ({
  kind: 'setting',
  flags,
  env,
  description,
});

/** A service ends without a result. */
type Outcome = Result | Promise<Result | void>;

/** The answer to the question of every command that destroys something. */
const yesOption = flag('--yes', 'do not ask for confirmation');

const WARNINGS = {
  always: 'This cannot be undone. Type the name to confirm, or pass --yes.',
  'at times': 'Asks for confirmation if data would be lost or access loosened; --yes confirms.',
};

export interface Definition<P extends Parameters> {
  /** More than the summary says, for `--help`. */
  details?: string;
  /** Two or three lines that can be pasted. */
  examples: readonly string[];
  parameters?: P;
  /** Runs until it is asked to stop, and then ends by itself (`serve`, `worker`). */
  service?: boolean;
  /** Changes what is stored: every run is recorded in the audit log, or those whose input says that it will. */
  audited?: boolean | ((input: Input<P>) => boolean);
  /**
   * The loss, where a run deletes permanently what no other command restores (decision 54): it is shown and confirmed
   * for before `run`. `at times` where only the work finds out; it then calls `context.confirm`. Brings `--yes` along.
   */
  destroys?: ((input: Input<P>) => Loss) | 'at times';
  run(context: Context, input: Input<P>): Outcome;
}

/**
 * A command as its module exports it: parameters known to the parser, handler ready to be called with the parsed words.
 */
export interface LoadedCommand {
  details?: string;
  examples: readonly string[];
  parameters: Parameters;
  service?: boolean;
  audited?: boolean | ((input: Record<string, unknown>) => boolean);
  /** `always`: fails immediately without a terminal, unless `--yes` is given. */
  destroys?: keyof typeof WARNINGS;
  run(context: Context, input: Record<string, unknown>): Outcome;
}

/**
 * Ties a command's parameters to the typed input of its handler. A handler holds no rule: input in, one use-case call,
 * a result out.
 */
export function defineCommand<const P extends Parameters>(definition: Definition<P>): LoadedCommand {
  return load({ parameters: {}, ...definition }, (_, input) => input as Input<P>);
}

/** `complete` finds what the handler works on, before anything is asked. */
function load<I>(
  {
    parameters,
    destroys,
    run,
    ...about
  }: {
    parameters: Parameters;
    destroys?: ((input: I) => Loss) | 'at times';
    run: (context: Context, input: I) => Outcome;
  },
  complete: (context: Context, input: Record<string, unknown>) => I | Promise<I>,
): LoadedCommand {
  const command = {
    ...about,
    parameters: { ...parameters, ...(destroys && { yes: yesOption }) },
    ...(destroys && { destroys: destroys === 'at times' ? destroys : 'always' }),
    async run(context: Context, given: Record<string, unknown>) {
      const input = await complete(context, given);
      if (typeof destroys === 'function') await context.confirm(destroys(input));
      return run(context, input);
    },
  };
  // The list of commands holds handlers of all kinds of parameters, of which each is called with its own only.
  return command as unknown as LoadedCommand;
}

type InputOn<P extends Parameters, N extends Parameters, T> = Omit<Input<P & N>, keyof T> & T;

type DefinitionOn<P extends Parameters, N extends Parameters, T> = Omit<
  Definition<P>,
  'parameters' | 'destroys' | 'run'
> & {
  /** Besides those that name the thing. */
  parameters?: P;
  destroys?: ((input: InputOn<P, N, T>) => Loss) | 'at times';
  run: (context: Context, input: InputOn<P, N, T>) => Outcome;
};

/**
 * A form of `defineCommand` for commands that work on one thing of the store: the parameters that name it come with the
 * form, and the handler finds what `choose` found by them in its input. A command that refuses or asks before anything
 * is connected is one for `defineCommand` itself.
 */
export function defineCommandOn<const N extends Parameters, T>(
  naming: N,
  choose: (context: Context, input: Input<N>) => Promise<T>,
): <const P extends Parameters>(definition: DefinitionOn<P, N, T>) => LoadedCommand {
  return <const P extends Parameters>({ parameters, ...about }: DefinitionOn<P, N, T>) => {
    const all = Object.entries<CommandParameter<unknown>>({ ...naming, ...parameters });
    const isArgument = ([, { kind }]: (typeof all)[number]): boolean => kind === 'argument';
    const sorted = [...all.filter(isArgument), ...all.filter((each) => !isArgument(each))];
    return load({ ...about, parameters: Object.fromEntries(sorted) }, async (context, given) => {
      const input = given as Input<P & N>;
      return { ...input, ...(await choose(context, input)) };
    });
  };
}

/** A leaf of the command tree; its module is imported only when it runs or explains itself. */
export interface CommandEntry {
  name: string;
  summary: string;
  load: () => Promise<{ default: LoadedCommand }>;
  commands?: undefined;
}

export interface CommandGroup {
  name: string;
  summary: string;
  commands: readonly CommandNode[];
  load?: undefined;
}

export type CommandNode = CommandEntry | CommandGroup;

/**
 * Gives a commander command the parameters of a loaded one. Missing arguments are not refused here: they may still be
 * asked for.
 */
export function declareParameters(command: Command, loaded: LoadedCommand): void {
  const usage: string[] = [];
  for (const parameter of Object.values(loaded.parameters)) {
    if (parameter.kind === 'argument') {
      command.argument(`[${parameter.flags}]`, parameter.description);
      usage.push(parameter.optional ? `[${parameter.flags}]` : `<${parameter.flags}>`);
    } else {
      for (const option of declareOptions(parameter)) command.addOption(option);
    }
  }
  command.usage([...usage, '[options]'].join(' '));
  const more = [loaded.details, loaded.destroys && WARNINGS[loaded.destroys]].filter(Boolean).join('\n');
  if (more) command.description(`${command.description()}\n\n${more}`);
  command.addHelpText('after', presentExamples(loaded.examples));
}

/** One example of each of its first three commands; three of a single one. */
export async function findExamples({ commands }: CommandGroup): Promise<readonly string[]> {
  const loads = commands.flatMap(({ load }) => load ?? []).slice(0, 3);
  const [first = [], ...others] = await Promise.all(loads.map(async (load) => (await load()).default.examples));
  return others.length === 0 ? first.slice(0, 3) : [first, ...others].map(([example = '']) => example);
}

export function presentExamples(examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((example) => `  $ ${example.replaceAll('\n', '\n    ')}`).join('\n')}`;
}

function declareOptions(parameter: CommandParameter<unknown>): Option[] {
  if (parameter.kind === 'secret') {
    return [
      new Option(`--${parameter.flags}-stdin`, `${parameter.description}: read from standard input`),
      new Option(`--${parameter.flags}-env <NAME>`, `${parameter.description}: read from this environment variable`),
    ];
  }
  const declared = new Option(parameter.flags, parameter.description);
  if (parameter.choices) declared.choices(parameter.choices);
  if (parameter.repeated || parameter.read) {
    declared.argParser((text: string, previous: unknown) => {
      const read = readOrRefuse(parameter, text);
      return parameter.repeated ? [...((previous as unknown[] | undefined) ?? []), read] : read;
    });
  }
  return [declared];
}

function readOrRefuse(parameter: CommandParameter<unknown>, text: string): unknown {
  if (!parameter.read) return text;
  try {
    return parameter.read(text);
  } catch (error) {
    if (error instanceof Error && error.name === 'UsageError') throw error;
    throw new InvalidArgumentError((error as Error).message.replace(/^must /, 'it must '));
  }
}

/** The parsed words as the handler's input and as settings (by environment name). */
export function collectInput(
  loaded: LoadedCommand,
  command: Command,
): { input: Record<string, unknown>; settings: Record<string, string>; implied: Record<string, string> } {
  const given = command.opts<Record<string, unknown>>();
  const input: Record<string, unknown> = {};
  const settings: Record<string, string> = {};
  const implied: Record<string, string> = {};
  let position = 0;
  for (const [name, parameter] of Object.entries(loaded.parameters)) {
    if (parameter.kind === 'argument') {
      input[name] = command.args[position++];
      continue;
    }
    if (parameter.kind === 'secret') {
      const stdin = given[new Option(`--${parameter.flags}-stdin`).attributeName()] === true;
      const env = given[new Option(`--${parameter.flags}-env <NAME>`).attributeName()] as string | undefined;
      input[name] = { option: `--${parameter.flags}`, stdin, env } satisfies SecretSource;
      continue;
    }
    const declared = new Option(parameter.flags);
    const found = given[declared.attributeName()];
    if (found === true) Object.assign(implied, parameter.implies);
    if (parameter.kind === 'setting') {
      if (found !== undefined) settings[parameter.env!] = typeof found === 'string' ? found : 'true';
    } else if (parameter.repeated) {
      input[name] = found ?? [];
    } else if (declared.negate) {
      input[name] = found === false;
    } else if (declared.isBoolean()) {
      input[name] = found === true;
    } else {
      input[name] = found;
    }
  }
  return { input, settings, implied };
}
