import { once } from 'node:events';
import { Chalk, type ChalkInstance } from 'chalk';
import type { Failure } from './exit.js';
import type { Io } from './io.js';

/** What a command answers with; run.ts prints the one of the three that was asked for. */
export interface Result {
  /** The one value of `--json`. */
  json: unknown;
  /** The bare essential value of `--quiet`: an id, a key; several are printed one per line. */
  quiet: string | number | readonly string[];
  /** For a person, without the last line feed. */
  text: (view: View) => string | Promise<string>;
  /** When the command did its work and has a failure to report with it (`doctor`, refused lines): told on stderr after the result. */
  failure?: Failure;
}

/** How text for a person is made: with colour and drawn tables at a terminal, plain otherwise. */
export interface View {
  paint: ChalkInstance;
  /** Rows below a head; drawn at a terminal, columns of plain text elsewhere. */
  table(head: readonly string[], rows: readonly (readonly unknown[])[]): Promise<string>;
}

export interface OutputOptions {
  json: boolean;
  quiet: boolean;
  colour: boolean;
}

/** A line about work under way; does nothing off a terminal. */
export interface Progress {
  update(text: string): void;
  stop(): void;
}

/** The only writer of stdout and stderr. */
export interface Output extends OutputOptions {
  view: View;
  /** Result text on stdout; waits while the reader is slower than we are. */
  write(text: string): Promise<void>;
  print(result: Result): Promise<void>;
  /** For people only: on stderr, and only at a terminal without `--quiet`. */
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
    if (!io.stdout.write(text) && !io.stdout.destroyed) await once(io.stdout, 'drain', { signal: io.stop });
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
      if (talks) io.stderr.write(withLineFeed(text));
    },
    warn(text) {
      running?.stop();
      io.stderr.write(withLineFeed(text));
    },
    async progress(text) {
      if (!talks) return { update: () => undefined, stop: () => undefined };
      const { default: ora } = await import('ora');
      // Stdin is left alone: a spinner that reads it would swallow Ctrl-C and piped data.
      const spinner = ora({ text, stream: io.stderr as NodeJS.WriteStream, discardStdin: false });
      if (!options.colour) spinner.color = undefined as never;
      spinner.start();
      running = {
        update: (next) => void (spinner.text = next),
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

function createView(stream: Io['stdout'], io: Io, colour: boolean): View {
  const painted = wantsColour(io, stream, colour);
  const paint = new Chalk({ level: painted ? 1 : 0 });
  return {
    paint,
    async table(head, rows) {
      const cells = rows.map((row) => row.map(presentCell));
      if (!stream.isTTY) return presentColumns([head, ...cells]);
      const { default: Table } = await import('cli-table3');
      // Painted here: the package would judge by the process's own environment whether colour is wanted.
      const table = new Table({ head: head.map((cell) => paint.cyan(cell)), style: { head: [], border: [] } });
      table.push(...cells);
      return table.toString();
    },
  };
}

async function presentResult(result: Result, options: OutputOptions, view: View): Promise<string> {
  if (options.json) return JSON.stringify(result.json);
  if (options.quiet) return Array.isArray(result.quiet) ? result.quiet.join('\n') : String(result.quiet);
  return result.text(view);
}

function presentColumns(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function presentCell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (value instanceof Date) return value.toISOString();
  return withoutControls(String(value));
}

/** Stored text may hold escape sequences; a terminal must not obey them. */
export function withoutControls(text: string): string {
  return text.replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, (control) => JSON.stringify(control).slice(1, -1));
}

function withLineFeed(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}
