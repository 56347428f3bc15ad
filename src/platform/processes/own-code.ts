import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync, readdirSync, realpathSync, watch as watchFolder } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { PACKAGE_ROOT } from '../../package.js';
import type { Logger } from '../observe/logger.js';

/** What a project's process of own code is started with. */
export interface OwnCodeSettings {
  /** The folder of its files; it reads nothing outside. */
  dir: string;
  /** All that it knows of the environment. */
  env: Record<string, string>;
  memoryMb: number;
  /** A secret key of the project. */
  key: string;
}

/** What one call is of: `handler` is `<file>#<name>`, `payload` JSON text of an object. */
export interface OwnCall {
  handler: string;
  payload: string;
  credentials?: { key: string; authorization: string };
  timeoutMs: number;
  /** What the requests of the handler say of themselves: 1 where they may call no more own code. */
  depth: number;
  /** A write waits for it: others leave room for it. */
  isAwaited?: boolean;
}

/** An address that a file has, such as `POST /quote`. */
export interface OwnAddress {
  /** `<file>#POST /quote` */
  handler: string;
  /** Also for requests without a key. */
  isPublic: boolean;
}

/** Why a call has no answer. */
export class OwnCodeError extends Error {}

/** Too many calls of the project are under way. */
export class OwnCodeBusy extends OwnCodeError {}

/** The processes of own code, one for each project that has any. */
export interface OwnCode {
  /** Runs a handler and answers what it returns; starts the process first where there is none. Throws OwnCodeError. */
  call(project: string, open: () => Promise<OwnCodeSettings>, call: OwnCall): Promise<unknown>;
  /** The addresses of a project's files, by method and path; starts the process first where there is none. */
  addresses(project: string, open: () => Promise<OwnCodeSettings>): Promise<ReadonlyMap<string, OwnAddress>>;
  /** The last lines that a project's own code has printed. */
  lines(project: string): readonly string[];
  /** Ends the process of a project, or all: the next call starts it again. */
  restart(project?: string): void;
  /** Where the API of this process is, for own code that calls back. */
  serveAt(url: string): void;
  /** Has own code find the variables that it is given. */
  seeEnvironment(find: (name: string) => string | undefined): void;
  /** A variable for own code. */
  variable(name: string): string | undefined;
  /** From now on a process ends when its folder is changed, and hands on what own code prints. */
  develop(print: (line: string) => void): void;
  close(): void;
}

/** Calls of one project under way at once: a handler that hangs takes no more of the service than this. */
export const MAX_CALLS = 64;
/** Of those, the most that anonymous callers of public addresses, and events, may use. */
const MAX_UNAWAITED = 32;
const MAX_LINES = 50;
const MAX_LINE_CHARACTERS = 500;
/** Of what is printed: more at once waits, so that a flood costs its writer the time. */
const FLOOD_BYTES = 64 * 1024;
const FLOOD_PAUSE_MS = 50;
/** On a busy machine a single executable takes its time to begin. */
const START_MS = 30_000;
const PING_MS = 1_000;
const WATCH_MS = 1_000;
/** What Node itself takes beside the heap. */
const BESIDE_HEAP_MB = 128;
const MAX_ANSWER_CHARACTERS = 2 * 1024 * 1024;
const FIRST_PAUSE_MS = 250;
const LAST_PAUSE_MS = 30_000;
/** Who has run so long has recovered. */
const HEALTHY_MS = 60_000;

const CHILD = join(PACKAGE_ROOT, 'templates', 'own-code', 'child.mjs');
const CLIENT = join(PACKAGE_ROOT, 'dist', 'client');
/** Own code sees its folder alone, starts no processes and loads no native parts. Node 22 dropped the long name. */
const PERMISSION = Number(process.versions.node.split('.')[0]) >= 23 ? '--permission' : '--experimental-permission';

export function openOwnCode(log: Logger, publicUrl: string | null): OwnCode {
  const children = new Map<string, ProjectProcess>();
  let url = publicUrl;
  let print: ((line: string) => void) | null = null;
  let variable: OwnCode['variable'] = () => undefined;
  let isClosed = false;
  const endAll = (): void => {
    for (const child of children.values()) child.end();
  };
  const find = (project: string): ProjectProcess => {
    if (isClosed) throw new OwnCodeError('The service is stopping.');
    let child = children.get(project);
    if (!child) {
      if (children.size === 0) process.once('exit', endAll);
      children.set(project, (child = new ProjectProcess(project, log, { url: () => url, print: () => print })));
    }
    return child;
  };
  return {
    call: (project, open, call) => find(project).call(open, call),
    addresses: (project, open) => find(project).addresses(open),
    lines: (project) => children.get(project)?.lines ?? [],
    restart(project) {
      if (project === undefined) endAll();
      else children.get(project)?.end();
    },
    seeEnvironment: (find) => void (variable = find),
    variable: (name) => variable(name),
    develop: (printing) => void (print = printing),
    // A socket has no address that a client could be given.
    serveAt: (served) => void (url = served.startsWith('http') ? served : publicUrl),
    close() {
      isClosed = true;
      endAll();
      process.off('exit', endAll);
    },
  };
}

interface Waiting {
  resolve: (answer: unknown) => void;
  reject: (error: OwnCodeError) => void;
}

interface Running {
  child: ChildProcess;
  socket: Socket;
  addresses: ReadonlyMap<string, OwnAddress>;
}

class ProjectProcess {
  readonly lines: string[] = [];
  #running: Promise<Running> | null = null;
  #child: ChildProcess | null = null;
  #waiting = new Map<number, Waiting>();
  #calls = 0;
  #crashes = 0;
  #startableAt = 0;

  constructor(
    private readonly project: string,
    private readonly log: Logger,
    private readonly outside: { url: () => string | null; print: () => ((line: string) => void) | null },
  ) {}

  async addresses(open: () => Promise<OwnCodeSettings>): Promise<Running['addresses']> {
    return (await this.#start(open)).addresses;
  }

  async call(open: () => Promise<OwnCodeSettings>, call: OwnCall): Promise<unknown> {
    const { handler, payload, credentials, timeoutMs, depth, isAwaited = false } = call;
    const { socket, child } = await this.#start(open);
    // Counted when it is sent: many may have waited for the start.
    const most = isAwaited ? MAX_CALLS : MAX_UNAWAITED;
    if (this.#waiting.size >= most) throw new OwnCodeBusy(`${most} calls of the project are under way.`);
    const id = ++this.#calls;
    const more = `,"depth":${depth}${credentials ? `,"credentials":${JSON.stringify(credentials)}` : ''}`;
    return this.#await(id, timeoutMs, `There was no answer within ${timeoutMs} ms.`, () => {
      socket.write(`{"id":${id},"handler":${JSON.stringify(handler)},"payload":${payload}${more}}\n`);
    }).catch((error: unknown) => {
      const isLate = child === this.#child && (error as OwnCodeError).message.startsWith('There was no');
      if (isLate) this.#requireAlive(socket);
      throw error;
    });
  }

  /** Ends a process that does not even answer this: its handlers hold up its thread. */
  #requireAlive(socket: Socket): void {
    const child = this.#child;
    const id = ++this.#calls;
    this.#await(id, PING_MS, 'hangs', () => socket.write(`{"ping":${id}}\n`)).catch(() => {
      if (child && child === this.#child) this.#kill('it hangs');
    });
  }

  #await(id: number, ms: number, late: string, send: () => void): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => settle(() => reject(new OwnCodeError(late))), ms);
      const settle = (then: () => void): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        then();
      };
      this.#waiting.set(id, {
        resolve: (answer) => settle(() => resolve(answer)),
        reject: (error) => settle(() => reject(error)),
      });
      send();
    });
  }

  #start(open: () => Promise<OwnCodeSettings>): Promise<Running> {
    if (this.#running) return this.#running;
    if (performance.now() < this.#startableAt) {
      return Promise.reject(new OwnCodeError('The process of own code has crashed and starts again in a moment.'));
    }
    const running = this.#spawn(open);
    this.#running = running;
    running.catch(() => {
      if (this.#running === running) this.#running = null;
    });
    return running;
  }

  async #spawn(open: () => Promise<OwnCodeSettings>): Promise<Running> {
    const { dir: given, env, memoryMb, key } = await open();
    let dir: string;
    let files: string[];
    try {
      dir = realpathSync(given);
      files = readdirSync(dir)
        .filter((name) => /\.m?js$/.test(name))
        .sort();
    } catch (error) {
      throw new OwnCodeError(`The folder of own code cannot be read: ${(error as Error).message}`);
    }
    const readable = [dir, CHILD, CLIENT].map((path) => `--allow-fs-read=${path}`);
    const limits = [`--max-old-space-size=${memoryMb}`, '--disable-warning=ExperimentalWarning', PERMISSION];
    // Not as arguments, of which an executable of bsvc takes none for Node.
    const options = [...limits, ...readable].map(quoteOption).join(' ');
    const child = spawn(process.execPath, [CHILD], {
      ...{ cwd: dir, env: { ...env, NODE_OPTIONS: options }, detached: true, windowsHide: true },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    const guard = endWithService(child);
    const startedAt = performance.now();
    const socket = child.stdio[3] as Socket;
    socket.on('error', () => undefined);
    for (const stream of [child.stdout!, child.stderr!]) this.#keepLines(stream as Socket);
    const watch = setInterval(() => this.#watchMemory(child, memoryMb), WATCH_MS).unref();
    const changed = this.outside.print() && watchFolder(dir, () => this.end());
    const ended = new Promise<never>((_, reject) => {
      const end = (why: string): void => {
        clearInterval(watch);
        guard?.kill('SIGKILL');
        changed?.close();
        if (this.#child === child) {
          this.#child = null;
          this.#running = null;
          this.#pause(startedAt);
        }
        const error = new OwnCodeError(`The process of own code ${why}.`);
        for (const waiting of [...this.#waiting.values()]) waiting.reject(error);
        reject(error);
      };
      child.once('error', (error) => end(`could not be started (${error.message})`));
      child.once('exit', (code, signal) => end(signal ? `was ended by ${signal}` : `ended with ${code}`));
    });
    ended.catch(() => undefined);
    const ready = this.#listen(socket);
    const begin = {
      dir,
      files,
      client: pathToFileURL(join(CLIENT, 'client.js')).href,
      api: { url: this.outside.url(), key },
    };
    socket.write(`${JSON.stringify({ begin })}\n`);
    const late = new Promise<never>((_, reject) => {
      setTimeout(() => reject(new OwnCodeError('The files of own code were not loaded in time.')), START_MS).unref();
    });
    late.catch(() => undefined);
    try {
      const addresses = await Promise.race([ready, ended, late]);
      const streams = [socket, child.stdout as Socket, child.stderr as Socket];
      for (const each of [child, ...streams]) each.unref();
      return { child, socket, addresses };
    } catch (error) {
      if (this.#child === child) this.#kill('its files were not loaded');
      throw error;
    }
  }

  #listen(socket: Socket): Promise<Running['addresses']> {
    return new Promise((resolve) => {
      let held = 0;
      socket.on('data', (chunk: Buffer) => {
        // A line has no bound of its own.
        held = chunk.includes(10) ? 0 : held + chunk.length;
        if (held > MAX_ANSWER_CHARACTERS) this.#kill('an answer is too large');
      });
      const incoming = createInterface({ input: socket });
      // It hands on the errors of its input.
      incoming.on('error', () => undefined);
      incoming.on('line', (line) => {
        const message = readMessage(line);
        if (!message) return this.#kill('it speaks another language');
        if (message.addresses) return resolve(message.addresses);
        const waiting = this.#waiting.get(message.id ?? 0);
        if (!waiting) return;
        if (message.error === undefined) waiting.resolve(message.answer);
        else waiting.reject(new OwnCodeError(`The handler threw: ${message.error}`));
      });
    });
  }

  #keepLines(stream: Socket): void {
    let rest = '';
    let read = 0;
    stream.on('error', () => undefined);
    stream.on('data', (chunk: Buffer) => {
      const texts = (rest + chunk.toString('utf8')).split('\n');
      rest = texts.pop()!.slice(0, MAX_LINE_CHARACTERS);
      this.#note(...texts.slice(-MAX_LINES));
      read += chunk.length;
      if (read < FLOOD_BYTES) return;
      read = 0;
      stream.pause();
      setTimeout(() => stream.resume(), FLOOD_PAUSE_MS).unref();
    });
  }

  #note(...lines: string[]): void {
    for (const line of lines) this.outside.print()?.(line);
    this.lines.push(...lines.map((line) => line.slice(0, MAX_LINE_CHARACTERS)));
    this.lines.splice(0, this.lines.length - MAX_LINES);
  }

  #watchMemory({ pid }: ChildProcess, memoryMb: number): void {
    let pages: number;
    try {
      pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
    } catch {
      // Another system, or it has just ended.
      return;
    }
    const isTooMuch = (pages * 4096) / 1024 ** 2 > memoryMb + BESIDE_HEAP_MB;
    if (isTooMuch) this.#kill(`it takes more than ${memoryMb} MB of memory`);
  }

  #pause(startedAt: number): void {
    const now = performance.now();
    this.#crashes = now - startedAt >= HEALTHY_MS ? 1 : this.#crashes + 1;
    this.#startableAt = now + Math.min(LAST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.#crashes - 1));
  }

  #kill(why: string): void {
    this.#note(`bsvc: the process was ended, ${why}`);
    this.log.warn({ project: this.project, why }, 'the process of own code was ended');
    killGroup(this.#child);
  }

  /** Ends the process on purpose: it may start again at once. */
  end(): void {
    const child = this.#child;
    this.#child = null;
    this.#running = null;
    this.#crashes = 0;
    this.#startableAt = 0;
    killGroup(child);
  }
}

/** One of several options in NODE_OPTIONS. */
function quoteOption(option: string): string {
  return `"${option.replace(/[\\"]/g, '\\$&')}"`;
}

interface Message {
  /** Of the first one: the files are loaded. */
  addresses?: ReadonlyMap<string, OwnAddress>;
  id?: number;
  answer?: unknown;
  error?: string;
}

/** A line of the child as it should be; null for any other, which its own code may have written. */
function readMessage(line: string): Message | null {
  try {
    const { ready, pong, id, answer, error } = JSON.parse(line) as Record<string, unknown>;
    if (Array.isArray(ready)) return { addresses: readAddresses(ready) };
    const number = pong ?? id;
    if (typeof number !== 'number') return null;
    return { id: number, answer, ...(typeof error === 'string' && { error: error.slice(0, MAX_LINE_CHARACTERS) }) };
  } catch {
    return null;
  }
}

function readAddresses(told: readonly unknown[]): Map<string, OwnAddress> {
  const found = new Map<string, OwnAddress>();
  for (const each of told) {
    const { name, handler, isPublic } = each as Record<string, unknown>;
    if (typeof name !== 'string' || typeof handler !== 'string') continue;
    found.set(name, { handler, isPublic: isPublic === true });
  }
  return found;
}

/**
 * Has a process end with the service however that ends. It does so by itself when its socket closes, but not while a
 * handler holds up its thread; this shell waits for the same and needs no turn of it. Null where there is no shell.
 */
function endWithService({ pid }: ChildProcess): ChildProcess | null {
  if (process.platform === 'win32' || pid === undefined) return null;
  const guard = spawn('/bin/sh', ['-c', 'read -r _; kill -9 -"$1"', 'sh', String(pid)], {
    ...{ env: {}, detached: true },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.on('error', () => undefined);
  guard.unref();
  const pipe = guard.stdin as Socket;
  pipe.on('error', () => undefined);
  pipe.unref();
  return guard;
}

function killGroup(child: ChildProcess | null): void {
  if (!child?.pid || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL');
  }
}
