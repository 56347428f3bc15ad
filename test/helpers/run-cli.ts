import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clearLine, cursorTo, moveCursor } from 'node:readline';
import { PassThrough, Readable } from 'node:stream';
import { run } from '../../cli/run.js';
import type { Constants } from '../../src/config/config.js';

export interface CliOutcome {
  code: number;
  stdout: string;
  stderr: string;
  /** stdout as the one JSON value it must be. */
  json<T = Record<string, never>>(): T;
}

export interface CliOptions {
  env?: Record<string, string>;
  cwd?: string;
  /** Other constants than the ones of the service. */
  constants?: Partial<Constants>;
  stdin?: string | Buffer;
  /** stdout and stderr, or stdout alone, pretend to be a terminal. stdin does not: prompts are tested on a real one. */
  terminal?: boolean | 'stdout';
  /** How wide that terminal is; unknown unless given. */
  columns?: number;
  stop?: AbortSignal;
}

/** Runs a command line in this process, on the streams and the environment given here and nothing else. */
export async function runCli(argv: string[], options: CliOptions = {}): Promise<CliOutcome> {
  const stdout = collect(Boolean(options.terminal), options.columns);
  const stderr = collect(options.terminal === true, options.columns);
  const code = await run(argv, {
    stdin: Readable.from(options.stdin === undefined ? [] : [Buffer.from(options.stdin)]),
    stdout: stdout.stream,
    stderr: stderr.stream,
    env: options.env ?? {},
    cwd: options.cwd ?? process.cwd(),
    constants: options.constants,
    stop: options.stop ?? new AbortController().signal,
  });
  return {
    code,
    stdout: stdout.text(),
    stderr: stderr.text(),
    json: <T>() => JSON.parse(stdout.text()) as T,
  };
}

/** A fresh directory, and a runner that keeps its data there; `remove` at the end. */
export function openCliHome(): {
  dir: string;
  bsvc(argv: string[], options?: CliOptions): Promise<CliOutcome>;
  remove(): void;
} {
  const dir = mkdtempSync(join(tmpdir(), 'bsvc-cli-'));
  const env = { BSVC_DATA_DIR: join(dir, 'data'), BSVC_DURABILITY: 'relaxed' };
  return {
    dir,
    bsvc: (argv, options = {}) => runCli(argv, { cwd: dir, ...options, env: { ...env, ...options.env } }),
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}

function collect(isTTY = false, columns?: number) {
  const chunks: Buffer[] = [];
  const stream = Object.assign(new PassThrough(), {
    isTTY,
    columns,
    // As a terminal's stream has them.
    cursorTo: (x: number) => cursorTo(stream, x),
    moveCursor: (dx: number, dy: number) => moveCursor(stream, dx, dy),
    clearLine: (direction: -1 | 0 | 1) => clearLine(stream, direction),
  });
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return { stream, text: () => Buffer.concat(chunks).toString('utf8') };
}
