import { Command, CommanderError } from 'commander';
import { COMMANDS, GROUPS, ROOT_EXAMPLES } from './commands/index.js';
import {
  collectInput,
  declareParameters,
  findExamples,
  presentExamples,
  type CommandNode,
  type LoadedCommand,
} from './shell/command.js';
import { requireConfirmable, type Context } from './shell/context.js';
import { EXIT, Interrupted, presentFailure, UsageError, type Failure } from './view/exit.js';
import { DEBUG_LEVELS, openContext, type GlobalOptions } from './shell/open-context.js';
import { describeAuditEntry, isAudited } from './shell/record-audit.js';
import { type Io, wantsColour, withoutControls } from './view/output.js';
import { conflict } from '../src/errors.js';
import type { NewAuditEntry } from '../src/features/audit/audit-log.js';
import { VERSION } from '../src/package.js';

/** A command that ignores being asked to stop is left alone after this time. */
const STOP_PATIENCE_MS = 2000;

/** Runs one command line and answers the exit code (cli.md). Never throws, never ends the process. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  const pipe = watchPipe(io);
  ensureWidth(io.stdout);
  ensureWidth(io.stderr);
  try {
    const exitCode = await dispatch(normalise(argv), io, pipe.signal);
    // The last write may still fail: a full disk must not look like success.
    await orInterrupted(new Promise<void>((resolve) => io.stdout.write('', () => resolve())), io.stop);
    const lost = pipe.failure();
    if (lost) throw lost;
    return pipe.closed() ? EXIT.done : exitCode;
  } catch (error) {
    if (pipe.closed()) return EXIT.done;
    const cause = pipe.failure() ? outputLost(pipe.failure()!) : error;
    return report(presentFailure(cause), error, io, readOutputWords(argv));
  } finally {
    pipe.unwatch();
  }
}

type Known = LoadedCommand | Pick<LoadedCommand, 'examples'>;

/** The commander tree of all names, with what is `known` of the command or group at `path`. */
export function buildProgram(path: readonly CommandNode[], known: Known): Program {
  const program = new Command('bsvc')
    .description('A self-hosted backend for applications: documents, accounts, files, mail and webhooks.')
    .version(VERSION, '--version', 'print the version')
    .option('--json', 'print exactly one JSON value and nothing else')
    .option('-q, --quiet', 'print only the main value (an ID or key)')
    .option('--no-color', 'no colour (also NO_COLOR)')
    .option('--no-input', 'never ask; a missing value is an error')
    .option('--data-dir <dir>', 'data directory (BSVC_DATA_DIR)')
    .option('--env-file <file>', 'settings file to read (default: ./.env, if there is one)')
    .helpOption('-h, --help', 'show this help')
    .helpCommand(false)
    .exitOverride()
    .configureHelp({ helpWidth: 100 });
  program.addHelpText('after', presentExamples(ROOT_EXAMPLES));
  const built: Program = { program, selected: null };
  for (const [group, nodes] of Object.entries(GROUPS)) {
    program.commandsGroup(`${group}:`);
    addNodes(program, nodes, path, known, built);
  }
  return built;
}

export interface Program {
  program: Command;
  /** The commander command of the leaf that was named, once parsed. */
  selected: Command | null;
}

function addNodes(
  parent: Command,
  nodes: readonly CommandNode[],
  path: readonly CommandNode[],
  known: Known,
  built: Program,
): void {
  for (const node of nodes) {
    const command = parent
      .command(node.name)
      .summary(node.summary)
      .description(`${node.summary.charAt(0).toUpperCase()}${node.summary.slice(1)}.`)
      .helpCommand(false);
    if (node.commands) {
      addNodes(command, node.commands, path, known, built);
      if (path.at(-1) === node) command.addHelpText('after', presentExamples(known.examples));
      continue;
    }
    command.action(() => void (built.selected = command));
    command.addHelpText('after', '\nGlobal options: bsvc --help');
    if ('parameters' in known && path.at(-1) === node) declareParameters(command, known);
    else command.allowUnknownOption().allowExcessArguments();
  }
}

async function dispatch(argv: readonly string[], io: Io, pipe: AbortSignal): Promise<number> {
  const path = findPath(argv);
  const leaf = path.at(-1);
  const loaded = leaf?.load ? (await leaf.load()).default : null;
  const built = buildProgram(path, loaded ?? { examples: leaf?.commands ? await findExamples(leaf) : [] });
  captureOutput(built.program, io);
  if (argv.length === 0) {
    built.program.outputHelp();
    return EXIT.done;
  }
  try {
    await built.program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return EXIT.done;
    throw explainUsage(error, path);
  }
  if (!loaded || !built.selected) throw new UsageError(`No command given. ${seeHelp(path)}`);
  rejectSwallowed([built.program, built.selected], path);
  return execute(loaded, path, built, io, AbortSignal.any([io.stop, pipe]));
}

/** Makes every command of the tree write its help to our stdout and leave its errors to us. */
function captureOutput(command: Command, io: Io): void {
  command.configureOutput({ writeOut: (text) => void io.stdout.write(text), writeErr: () => undefined });
  for (const child of command.commands) captureOutput(child, io);
}

async function execute(
  loaded: LoadedCommand,
  path: readonly CommandNode[],
  { program, selected }: Program,
  io: Io,
  stop: AbortSignal,
): Promise<number> {
  const { input, settings, implied } = collectInput(loaded, selected!);
  const action = path.map(({ name }) => name).join(' ');
  const act = (): NewAuditEntry | null => (isAudited(loaded, input) ? describeAuditEntry(action, loaded, input) : null);
  const yes = input['yes'] === true;
  const context = openContext(io, program.opts<GlobalOptions>(), { settings, implied }, stop, act, {
    reads: !loaded.audited,
    yes,
  });
  const bounded = <T>(work: T | Promise<T>): T | Promise<T> => (loaded.service ? work : orInterrupted(work, stop));
  try {
    await askForArguments(context, loaded, path, input);
    if (loaded.destroys === 'always') requireConfirmable(context.ask, yes);
    const result = await bounded(loaded.run(context, input));
    // The result may be shown only now: an end that cannot be recorded must not hide it.
    const unrecorded = await bounded(context.finish(result?.failure?.code ?? null).then(() => null, presentFailure));
    if (result) await context.out.print(result);
    if (unrecorded) context.out.warn(`Warning: the audit log has no end of this act. ${unrecorded.message}`);
    return result?.failure ? report(result.failure, null, io, program.opts<GlobalOptions>()) : EXIT.done;
  } catch (error) {
    await bounded(context.finish(presentFailure(error).code).catch(() => undefined));
    throw error;
  } finally {
    await bounded(context.close());
  }
}

async function askForArguments(
  context: Context,
  loaded: LoadedCommand,
  path: readonly CommandNode[],
  input: Record<string, unknown>,
): Promise<void> {
  for (const [name, parameter] of Object.entries(loaded.parameters)) {
    if (parameter.kind !== 'argument' || parameter.optional || input[name] !== undefined) continue;
    input[name] = parameter.ask
      ? await parameter.ask(context)
      : await context.ask.text(
          `${capitalised(parameter.description)}:`,
          `The argument <${parameter.flags}> is missing. ${seeHelp(path)}`,
        );
  }
}

/** Waits for a step of a command, but not for ever once it is asked to stop. */
async function orInterrupted<T>(work: T | Promise<T>, stop: AbortSignal): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let onStop: (() => void) | undefined;
  const interrupted = new Promise<never>((_, reject) => {
    onStop = () => void (timer = setTimeout(() => reject(new Interrupted()), STOP_PATIENCE_MS));
    if (stop.aborted) onStop();
    else stop.addEventListener('abort', onStop, { once: true });
  });
  try {
    return await Promise.race([work, interrupted]);
  } catch (error) {
    throw stop.aborted ? new Interrupted() : error;
  } finally {
    clearTimeout(timer);
    if (onStop) stop.removeEventListener('abort', onStop);
  }
}

/** `bsvc help project create` is `bsvc project create --help`. */
function normalise(argv: readonly string[]): string[] {
  if (argv[0] !== 'help') return [...argv];
  return argv.length === 1 ? [] : [...argv.slice(1), '--help'];
}

const OPTIONS_WITH_VALUE = new Set(['--data-dir', '--env-file']);

/** The nodes that the words name, from the top; shorter than asked when a word is unknown. */
function findPath(argv: readonly string[]): CommandNode[] {
  const path: CommandNode[] = [];
  let nodes: readonly CommandNode[] | undefined = COMMANDS;
  for (let index = 0; index < argv.length && nodes; index++) {
    const word = argv[index]!;
    if (OPTIONS_WITH_VALUE.has(word)) index++;
    if (word.startsWith('-')) continue;
    const node: CommandNode | undefined = nodes.find(({ name }) => name === word);
    if (!node) break;
    path.push(node);
    nodes = node.commands;
  }
  return path;
}

/** Commander's wording: `option '--limit <n>' argument 'x' is invalid. it must be a number`. */
const INVALID_VALUE = /^(option '[^']*') argument ('.*') is invalid\. (.*)$/;

function explainUsage(error: CommanderError, path: readonly CommandNode[]): UsageError {
  if (error.code === 'commander.help') {
    const verbs = path
      .at(-1)
      ?.commands?.map(({ name }) => name)
      .join(', ');
    return new UsageError(`A command is missing${verbs ? `: ${verbs}` : ''}. ${seeHelp(path)}`);
  }
  const meant = error.code === 'commander.unknownCommand' ? findSynonym(error.message, path) : null;
  const text = (meant === null ? error.message : error.message.replace(/\n.*|$/, `\n(Did you mean ${meant}?)`))
    .replace(/^error: /, '')
    .replaceAll('\n', ' ')
    .replace(INVALID_VALUE, '$1 cannot be $2: $3')
    .replace(': Allowed choices are', ': choose one of');
  return new UsageError(`${capitalised(text)}${/[.?]$/.test(text) ? '' : '.'} ${seeHelp(path)}`);
}

/** Words that people use for the same act, of which each group of commands has its own. */
const SYNONYMS: readonly (readonly string[])[] = [
  ['list', 'ls', 'query', 'find', 'search', 'logs'],
  ['show', 'get', 'info', 'describe', 'status', 'usage'],
  ['create', 'add', 'new', 'insert', 'make', 'install', 'invite'],
  ['update', 'edit', 'change', 'set', 'modify', 'patch', 'rename', 'disable', 'enable'],
  ['delete', 'remove', 'rm', 'drop', 'trash', 'revoke', 'erase', 'clear', 'purge'],
];

/** The command of the group that does what the word says; it is nearer than one that is spelt alike. */
function findSynonym(message: string, path: readonly CommandNode[]): string | null {
  const word = /unknown command '([^']*)'/.exec(message)?.[1];
  const words = SYNONYMS.find((group) => word !== undefined && group.includes(word)) ?? [];
  const names = (path.at(-1)?.commands ?? COMMANDS).map(({ name }) => name);
  return words.find((other) => names.includes(other)) ?? null;
}

/** `--data-dir --port 80` would make a directory of the name `--port`. */
function rejectSwallowed(commands: readonly Command[], path: readonly CommandNode[]): void {
  const names = new Set<unknown>(commands.flatMap(({ options }) => options.map(({ long }) => long)));
  for (const command of commands) {
    for (const option of command.options) {
      const values = [command.getOptionValue(option.attributeName()) as unknown].flat();
      const swallowed = values.find((value) => names.has(value)) as string | undefined;
      if (swallowed === undefined) continue;
      throw new UsageError(`Option '${option.flags}' argument missing: '${swallowed}' is an option. ${seeHelp(path)}`);
    }
  }
}

function seeHelp(path: readonly CommandNode[]): string {
  return `See "${['bsvc', ...path.map(({ name }) => name)].join(' ')} --help".`;
}

/** The output options of a command line that may not even parse. */
function readOutputWords(argv: readonly string[]): Pick<GlobalOptions, 'json' | 'color'> {
  return { json: argv.includes('--json'), color: !argv.includes('--no-color') };
}

function report(failure: Failure, error: unknown, io: Io, options: Pick<GlobalOptions, 'json' | 'color'>): number {
  const mark = wantsColour(io, io.stderr, options.color) ? '\u001b[31mbsvc:\u001b[39m' : 'bsvc:';
  io.stderr.write(`${mark} ${withoutControls(failure.message)}\n`);
  if (failure.note) io.stderr.write(`${failure.note}\n`);
  if (failure.unexpected && DEBUG_LEVELS.includes(io.env['BSVC_LOG_LEVEL'] ?? '')) {
    io.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  }
  if (options.json) {
    const { code, message, docs, details } = failure;
    io.stderr.write(`${JSON.stringify({ success: false, code, message, docs, details })}\n`);
  }
  return failure.exitCode;
}

/**
 * Detects that stdout was closed (`bsvc … | head`): the command stops without an error. Any other failure
 * with it is a failure.
 */
function watchPipe(io: Io): {
  signal: AbortSignal;
  closed(): boolean;
  failure(): NodeJS.ErrnoException | null;
  unwatch(): void;
} {
  const controller = new AbortController();
  let failure: NodeJS.ErrnoException | null = null;
  const onError = (error: NodeJS.ErrnoException): void => {
    if (error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED') controller.abort(error);
    else failure ??= error;
  };
  const ignore = (): void => undefined;
  io.stdout.on('error', onError);
  io.stderr.on('error', ignore);
  return {
    signal: controller.signal,
    closed: () => controller.signal.aborted,
    failure: () => failure,
    unwatch() {
      io.stdout.off('error', onError);
      io.stderr.off('error', ignore);
    },
  };
}

function outputLost({ code = 'unknown' }: NodeJS.ErrnoException): Error {
  const why = code === 'ENOSPC' ? 'the disk is full' : code;
  return conflict('OUTPUT_LOST', `Standard output cannot be written: ${why}. What was done stays done.`);
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Of a terminal that says 0: one made by `ssh -tt` from cron, or by a container. */
const UNKNOWN_WIDTH = 80;

/** Gives a terminal's stream a width that one can divide by, for tables, spinners and prompts alike. */
function ensureWidth(stream: Io['stdout'] | Io['stderr']): void {
  if (!stream.isTTY) return;
  let told = (stream as Io['stdout']).columns;
  // The stream itself writes it again when the window changes.
  Object.defineProperty(stream, 'columns', {
    configurable: true,
    enumerable: true,
    get: () => (told === 0 ? UNKNOWN_WIDTH : told),
    set: (columns: number) => void (told = columns),
  });
}
