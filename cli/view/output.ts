import { once } from 'node:events';
import { Chalk, type ChalkInstance } from 'chalk';
import type { Failure } from './exit.js';
import { drawTable, presentColumns, wrapText, type TableOptions } from './table.js';
import type { Readable, Writable } from 'node:stream';
import type { Constants } from '../../src/config/config.js';

/** The result of a command in three forms; run.ts prints the requested one. */
export interface Result {
  /** The one value of `--json`. */
  json: unknown;
  /** The bare essential value of `--quiet`: an id, a key; several are printed one per line. */
  quiet: string | number | readonly string[];
  /** For a person, without the last line feed. */
  text: (view: TextStyle) => string | Promise<string>;
  /** Holds content of users: `--json` says so, for programs that take what they read for instructions (agents.md 2). */
  untrusted?: true;
  /** A failure beside the result (`doctor`, refused lines): printed on stderr after it. */
  failure?: Failure;
}

/** Content of a table's cell; null, undefined and an empty text show as `-`. */
export type CellValue = string | number | boolean | Date | null | undefined;

/** The style of text for a person: with colour and drawn tables at a terminal, plain otherwise. */
export interface TextStyle {
  paint: ChalkInstance;
  /** Rows below a head; drawn at a terminal, columns of plain text elsewhere. */
  table: (head: readonly string[], rows: readonly (readonly CellValue[])[], options?: TableOptions) => string;
  /** Text that begins at column `indent`; at a terminal it is continued there on the next lines. */
  hang: (indent: number, text: string) => string;
}

export interface OutputOptions {
  json: boolean;
  quiet: boolean;
  colour: boolean;
}

/** A line about work under way; does nothing off a terminal. */
export interface Progress {
  /** `share`: how much of the work is done, 0 to 1, where that is known; drawn as a bar with the time left. */
  update(text: string, share?: number): void;
  stop(): void;
}

/** The only writer of stdout and stderr. */
export interface Output extends OutputOptions {
  view: TextStyle;
  /** Result text on stdout; waits while the reader is slower than we are. */
  write(text: string): Promise<void>;
  print(result: Result): Promise<void>;
  /** Prints for people only: on stderr, and only at a terminal without `--quiet`. */
  note(text: string): void;
  /** On stderr always: something the caller should know although the command goes on. */
  warn(text: string): void;
  progress(text: string): Promise<Progress>;
}

export function openOutput(io: Io, options: OutputOptions): Output {
  const stdoutView = createView(io.stdout, io, options.colour);
  const talks = Boolean(io.stderr.isTTY) && !options.quiet;
  let running: Progress | null = null;

  const write = async (text: string): Promise<void> => {
    if (!io.stdout.write(shown(text, io.stdout)) && !io.stdout.destroyed) {
      await once(io.stdout, 'drain', { signal: io.stop });
    }
  };

  return {
    ...options,
    view: stdoutView,
    write,
    async print(result) {
      running?.stop();
      await write(withLineFeed(await presentResult(result, options, stdoutView)));
    },
    note(text) {
      if (talks) io.stderr.write(withLineFeed(withoutControls(text)));
    },
    warn(text) {
      running?.stop();
      io.stderr.write(withLineFeed(shown(text, io.stderr)));
    },
    async progress(text) {
      if (!talks) return { update: () => undefined, stop: () => undefined };
      const { default: ora } = await import('ora');
      // Stdin is left alone: a spinner that reads it would swallow Ctrl-C and piped data.
      const spinner = ora({ text, stream: io.stderr, discardStdin: false, isEnabled: canRedraw(io) });
      if (!wantsColour(io, io.stderr, options.colour)) spinner.color = undefined;
      spinner.start();
      const startTick = performance.now();
      running = {
        update: (next, share) => {
          const bar = share === undefined ? '' : `${presentProgress(share, performance.now() - startTick)}  `;
          spinner.text = bar + next;
        },
        stop: () => {
          spinner.stop();
          running = null;
        },
      };
      return running;
    },
  };
}

/** Colour needs a terminal and no objection by `--no-color`, NO_COLOR or TERM=dumb. */
export function wantsColour(io: Io, stream: { isTTY?: boolean }, allowed: boolean): boolean {
  return allowed && Boolean(stream.isTTY) && !io.env['NO_COLOR'] && io.env['TERM'] !== 'dumb';
}

/** Whether lines may be drawn over: not in the log of a continuous integration, nor on a terminal that cannot. */
function canRedraw(io: Io): boolean {
  return !('CI' in io.env) && io.env['TERM'] !== 'dumb';
}

function createView(stream: Io['stdout'], io: Io, colour: boolean): TextStyle {
  const painted = wantsColour(io, stream, colour);
  const paint = new Chalk({ level: painted ? 1 : 0 });
  return {
    paint,
    table(head, rows, options) {
      if (!stream.isTTY) return presentColumns([head, ...rows.map((row) => row.map(presentCell))]);
      const cells = rows.map((row) => row.map((value) => shortenTime(presentCell(value))));
      return drawTable(head, cells, stream.columns ?? null, paint, options);
    },
    hang(indent, text) {
      if (!stream.isTTY || !stream.columns || stream.columns < 2 * indent) return text;
      return wrapText(text, stream.columns - indent).replaceAll('\n', `\n${' '.repeat(indent)}`);
    },
  };
}

async function presentResult(result: Result, options: OutputOptions, view: TextStyle): Promise<string> {
  if (options.json) return JSON.stringify(result.untrusted ? markUntrusted(result.json) : result.json);
  if (options.quiet) return Array.isArray(result.quiet) ? result.quiet.join('\n') : String(result.quiet);
  return result.text(view);
}

/** The value with `untrusted` in it, of a list in each of its items. */
function markUntrusted(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(markUntrusted);
  return typeof json === 'object' && json !== null ? { ...json, untrusted: true } : json;
}

/**
 * Text as a stream may have it: whole for files and programs, without what a terminal would obey for people. In JSON
 * the escapes mean the same.
 */
function shown(text: string, stream: { isTTY?: boolean }): string {
  return stream.isTTY ? withoutControls(text) : text;
}

/** At a terminal, where every column counts; elsewhere times stay as programs read them. */
function shortenTime(cell: string): string {
  return cell.replace(/\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{3}Z/g, '$1 $2Z');
}

function presentCell(value: CellValue): string {
  if (value === null || value === undefined || value === '') return '-';
  if (value instanceof Date) return value.toISOString();
  return String(value).replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, escapeControl);
}

/**
 * Stored text may hold escape sequences, which a terminal must not obey: they are shown. Colours, tabs and ends of
 * lines are what they are.
 */
export function withoutControls(text: string): string {
  return text.replace(CONTROLS, (match) => (match.length > 1 ? match : escapeControl(match)));
}

const CONTROLS = /\u001b\[\d{1,2}m|\r(?!\n)|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

function escapeControl(control: string): string {
  return control < ' ' ? JSON.stringify(control).slice(1, -1) : `\\u00${control.charCodeAt(0).toString(16)}`;
}

function withLineFeed(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

/** The part of its process that a command may touch, so that tests can run it without one. */
export interface Io {
  stdin: Readable & { isTTY?: boolean };
  stdout: Writable & { isTTY?: boolean; columns?: number };
  stderr: Writable & { isTTY?: boolean };
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
  /** Other constants, for tests. */
  constants?: Partial<Constants>;
  /** Aborted by SIGINT, SIGTERM or SIGHUP; its reason is the signal's name. */
  stop: AbortSignal;
}

const BAR_CELLS = 20;

/** A bar with percent and time left, for work of which `share` (0 to 1) is done after `elapsedMs`. */
export function presentProgress(share: number, elapsedMs: number): string {
  const done = Math.min(1, Math.max(0, share));
  const cells = Math.round(done * BAR_CELLS);
  const bar = '█'.repeat(cells) + '░'.repeat(BAR_CELLS - cells);
  const percent = `${Math.floor(done * 100)} %`.padStart(5);
  // The first moments say nothing of the rest.
  const left = done >= 0.02 && elapsedMs >= 1000 ? `, ${presentLeft((elapsedMs * (1 - done)) / done)} left` : '';
  return `${bar} ${percent}${left}`;
}

function presentLeft(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.ceil(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
