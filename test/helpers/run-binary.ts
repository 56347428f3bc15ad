import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Constants } from '../../src/config/config.js';
import { findFreePort } from './listen.js';

const ROOT = join(import.meta.dirname, '..', '..');
/** Another checkout's, to see what a test finds there. */
export const BINARY = process.env.BSVC_TEST_BINARY ?? join(ROOT, 'bin', 'bsvc.js');

/** Tests come from one address; those of the limits switch them on. */
const WITHOUT_LIMITS = { BSVC_RATE_LIMIT: 'off', BSVC_AUTH_RATE_LIMIT: 'off' };
const FROM_SOURCE = join(import.meta.dirname, 'serve-from-source.ts');

export interface BinaryOutcome {
  /** null when a signal ended it. */
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface BinaryOptions {
  env?: Record<string, string>;
  cwd?: string;
  /** Text to pipe in; without it stdin is closed at once. */
  stdin?: string;
  /** The most files and connections that it may have open. */
  openFiles?: number;
  /** Called as soon as the process runs. */
  onStart?: (child: ChildProcess) => void;
  /** Another version's. */
  binary?: string;
}

/** The real binary in a process of its own, with an environment of its own. Needs `npm run build`. */
export async function runBinary(argv: string[], options: BinaryOptions = {}): Promise<BinaryOutcome> {
  const child = spawnBinary(argv, options.env ?? {}, options);
  let stdout = '';
  let stderr = '';
  child.stdout!.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  // The process may end without having read what it was given.
  child.stdin!.on('error', () => undefined).end(options.stdin ?? '');
  options.onStart?.(child);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

/** What a command that has to succeed prints. */
export async function runOrThrow(argv: string[], env: Record<string, string>, binary = BINARY): Promise<string> {
  const { code, stdout, stderr } = await runBinary(argv, { env, binary });
  if (code !== 0) throw new Error(`bsvc ${argv.join(' ')} ended with ${code}: ${stderr}`);
  return stdout.trim();
}

/** The one JSON line that `serve` or `worker` prints when it is ready. */
export interface ReadyLine {
  url: string;
  pid: number;
  /** With --demo. */
  demo?: { keys: { publishable: string; secret: string } };
}

export interface RunningService {
  process: ChildProcess;
  ready: ReadyLine;
  /** Everything printed so far. */
  stdout(): string;
  stderr(): string;
  /** Sends the signal and answers the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/**
 * Starts `serve` or `worker` with --json and waits for its ready line; `onStart` gets the process before that. With
 * `constants` it runs from source, with these instead of its own.
 */
export async function startService(
  argv: string[],
  env: Record<string, string>,
  {
    constants,
    ...options
  }: Pick<BinaryOptions, 'openFiles' | 'onStart' | 'binary'> & { constants?: Partial<Constants> } = {},
): Promise<RunningService> {
  const child = constants
    ? spawnBinary(
        [...argv, '--json'],
        { ...env, BSVC_TEST_CONSTANTS: JSON.stringify(constants), NODE_OPTIONS: '--import tsx' },
        { ...options, binary: FROM_SOURCE },
      )
    : spawnBinary([...argv, '--json'], env, options);
  options.onStart?.(child);
  let stdout = '';
  let stderr = '';
  child.stdout!.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdin!.end();
  const lines = createInterface({ input: child.stdout! });
  const first = await Promise.race([
    once(lines, 'line').then(([line]) => line as string),
    once(child, 'close').then(() => Promise.reject(new Error(`it ended before it was ready: ${stderr}`))),
  ]);
  return {
    process: child,
    ready: JSON.parse(first) as ReadyLine,
    stdout: () => stdout,
    stderr: () => stderr,
    async stop(signal = 'SIGTERM') {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      child.kill(signal);
      const [code] = (await once(child, 'close')) as [number | null];
      return code;
    },
  };
}

/**
 * The database of a store in a process of its own behind its wire transport, as a MongoDB is one, and the environment
 * of those that use it.
 */
export async function startDatabase(
  store: Record<string, string>,
): Promise<{ database: RunningService; env: Record<string, string> }> {
  const port = await findFreePort();
  const env = { ...store, BSVC_ENGINE_LISTEN: `127.0.0.1:${port}` };
  const database = await startService(['serve', '--port', '0', '--no-worker'], env);
  return { database, env: { ...store, MONGODB_URI: `mongodb://127.0.0.1:${port}/?directConnection=true` } };
}

const running = new Set<ChildProcess>();

/** Kills what is still running: a test that failed before it could stop what it had started leaves nothing behind. */
export function killRunning(): void {
  for (const child of running) child.kill('SIGKILL');
}

function spawnBinary(
  argv: string[],
  env: Record<string, string>,
  { cwd = ROOT, openFiles, binary = BINARY }: Pick<BinaryOptions, 'cwd' | 'openFiles' | 'binary'> = {},
): ChildProcess {
  if (!existsSync(join(ROOT, 'dist', 'main.js'))) throw new Error('dist/ is missing: run "npm run build" first');
  const words = [process.execPath, binary, ...argv];
  // Node raises the limit that may be passed to the one that may not: the shell sets both.
  const [command, ...rest] =
    openFiles === undefined ? words : ['bash', '-c', 'ulimit -n "$0" && exec "$@"', String(openFiles), ...words];
  const child = spawn(command!, rest, {
    cwd,
    env: { PATH: process.env.PATH!, TMPDIR: tmpdir(), ...WITHOUT_LIMITS, ...env },
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}
