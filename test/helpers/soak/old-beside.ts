import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { BINARY, type BinaryOutcome, runBinary, type RunningService, startService } from '../run-binary.js';
import { openTempDir } from '../temp-dir.js';
import { openCaller, type SoakCaller } from './caller.js';

export interface OldBeside {
  /** The earlier version, or the folder in which one is built. */
  commit: string;
  /** How often each command is run beside each server. */
  rounds: number;
  onProgress(line: string): void;
}

export interface OldBesideReport {
  commit: string;
  /** By server and commands: replies by kind and status, and how commands ended. */
  orders: Record<string, { replies: Record<string, number>; ends: Record<string, number> }>;
  violations: string[];
}

const ROOT = join(import.meta.dirname, '..', '..', '..');
const PROCESSES = '3';
const DOCUMENTS = 50;
/** Beside a server of another version a command does what it is asked for, or refuses in words. */
const GOOD = 0;
const REFUSED = 3;
/** Earlier versions refuse a newer store with one or the other. */
const REFUSED_EARLIER = [1, 3];

/** Commands that look at a store, and those that change it or are given another version's. */
const LOOKING = [
  ['migrate', 'status'],
  ['project', 'list'],
  ['collection', 'list'],
  ['settings'],
  ['data', 'query', 'notes'],
  ['data', 'export', 'notes', '--format', 'ndjson'],
];
const CHANGING = [
  ['doctor', '--json'],
  ['doctor', '--deep', '--json'],
  ['data', 'insert', 'notes', '{"by":"a command"}'],
  ['migrate', 'up'],
  ['worker'],
];

/**
 * A server of an earlier version with commands of this one beside it, and the other way round: clients of the server
 * notice nothing, commands end well or refuse in words, and what was acknowledged is there in the end, also when this
 * version takes over. Needs `npm run build`, git and the npm registry.
 */
export async function soakOldBeside({ commit, rounds, onProgress }: OldBeside): Promise<OldBesideReport> {
  const report: OldBesideReport = { commit, orders: {}, violations: [] };
  const dir = await openTempDir();
  try {
    const earlier = build(commit, join(dir.path, 'earlier'), onProgress);
    const data = (name: string): Record<string, string> => ({
      BSVC_DATA_DIR: join(dir.path, name),
      BSVC_SECRET_KEY: 'a master key for soaking only: 0123456789abcdef',
      BSVC_PROJECT: 'shop',
      BSVC_LOG_LEVEL: 'error',
      BSVC_DURABILITY: 'relaxed',
    });
    const names = { [earlier]: commit, [BINARY]: 'this version' };
    for (const [server, commands] of [
      [earlier, BINARY],
      [BINARY, earlier],
    ] as const) {
      const order = `${names[server]} serves, commands of ${names[commands]}`;
      onProgress(order);
      const env = data(server === BINARY ? 'this' : 'other');
      const run = new Order(server, commands, env, order, report);
      await run.finish(rounds);
    }
    return report;
  } finally {
    await dir.remove();
  }
}

/** Another version's command. */
function build(commit: string, folder: string, tell: (line: string) => void): string {
  const built = join(commit, 'bin', 'bsvc.js');
  if (existsSync(built)) return built;
  mkdirSync(folder);
  const archive = execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: 2 ** 30 });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  tell(`installing and building ${commit}`);
  const npm = (...words: string[]): void =>
    void execFileSync('npm', words, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  npm('ci', '--silent', '--no-audit', '--no-fund');
  npm('run', '--silent', 'build');
  return join(folder, 'bin', 'bsvc.js');
}

/** One server with commands beside it. */
class Order {
  #isOver = false;
  readonly #stored = new Set<string>();
  readonly #ends: Record<string, number> = {};

  constructor(
    private readonly server: string,
    private readonly commands: string,
    private readonly env: Record<string, string>,
    private readonly name: string,
    private readonly report: OldBesideReport,
  ) {}

  async finish(rounds: number): Promise<void> {
    const { server, env } = this;
    const service = await this.#serve(server);
    try {
      const caller = await this.#prepare(service);
      const clients = Array.from({ length: 3 }, () => this.#use(caller));
      for (let round = 0; round < rounds; round++) {
        for (const words of LOOKING) this.#judge(words, await runBinary(words, { env, binary: this.commands }));
        for (const words of CHANGING) await this.#change(words);
      }
      this.#isOver = true;
      await Promise.all(clients);
      this.report.orders[this.name] = { replies: Object.fromEntries(caller.counts), ends: this.#ends };
      this.report.violations.push(...caller.violations.map((violation) => `${this.name}: ${violation}`));
      await this.#compare(caller);
      if (caller.counts.size === 0) this.#complain('nothing was asked for');
    } finally {
      this.#isOver = true;
      const code = await service.stop();
      if (code !== 0) this.#complain(`the server ended with ${code}`);
    }
    await this.#takeOver();
  }

  #serve(binary: string): Promise<RunningService> {
    return startService(['serve', '--port', '0', '--processes', PROCESSES], this.env, { binary });
  }

  async #prepare({ ready }: RunningService): Promise<SoakCaller> {
    const { env, server: binary } = this;
    const made = await runBinary(['project', 'create', 'shop', '--json'], { env, binary });
    const { keys } = JSON.parse(made.stdout) as { keys: SoakCaller['keys'] };
    await runBinary(['collection', 'add', 'notes', '--flexible'], { env, binary });
    return openCaller(
      () => ready.url,
      keys,
      () => this.#isOver,
    );
  }

  /** Writes and reads until it is over; everything has to be answered as without the commands. */
  async #use(caller: SoakCaller): Promise<void> {
    for (let n = 0; !caller.over(); n++) {
      const reply = await caller.send('insert', 'POST', '/api/data/notes', { body: { n } });
      if (reply?.status === 201) {
        const id = reply.body._id as string;
        this.#stored.add(id);
        await caller.send('update', 'PATCH', `/api/data/notes/${id}`, { body: { n: n + 1 } });
        await caller.send('get', 'GET', `/api/data/notes/${id}`);
      } else this.#complain(`an insert was answered with ${reply?.status ?? 'nothing'}`);
      await caller.send('list', 'GET', `/api/data/notes?limit=${DOCUMENTS}`);
      await wait(20);
    }
  }

  async #change(words: string[]): Promise<void> {
    const { env, commands: binary } = this;
    // A worker that may run beside the server does so until it is stopped.
    if (words[0] === 'worker') {
      const worker = await startService(words, env, { binary }).catch((error: Error) => error);
      if (worker instanceof Error) this.#judge(words, { code: REFUSED, stdout: '', stderr: worker.message });
      else this.#judge(words, { code: await worker.stop(), stdout: '', stderr: '' });
    } else this.#judge(words, await runBinary(words, { env, binary }));
  }

  #judge(words: string[], { code, stdout, stderr }: BinaryOutcome): void {
    const command = words.slice(0, words[0] === 'data' ? 2 : 3).join(' ');
    const end = `${command}: ${code}`;
    this.#ends[end] = (this.#ends[end] ?? 0) + 1;
    // The doctor finds this and that in any store.
    if (words[0] === 'doctor' && code !== null && stdout.startsWith('{')) return;
    const codes = this.commands === BINARY ? [REFUSED] : REFUSED_EARLIER;
    const isInWords = /^(it ended before it was ready: )?bsvc: .+/m.test(stderr) && !/^ +at .+:\d+/m.test(stderr);
    const isRefused = code !== null && codes.includes(code) && isInWords;
    if (code !== GOOD && !isRefused) this.#complain(`${command} ended with ${code}: ${stderr.slice(0, 500)}`);
  }

  /** All that was acknowledged is there, by the count that a client is given. */
  async #compare(caller: SoakCaller): Promise<void> {
    const reply = await caller.send('count', 'GET', '/api/data/notes?count=true&by_exists=false');
    const { count } = (reply?.body.data ?? {}) as { count?: number };
    if (count !== this.#stored.size) this.#complain(`${count} of ${this.#stored.size} documents are there`);
  }

  /** This version goes on with what the server has left. */
  async #takeOver(): Promise<void> {
    const { env } = this;
    const service = await this.#serve(BINARY);
    const exported = await runBinary(['data', 'export', 'notes', '--format', 'ndjson'], { env });
    const ids = new Set(
      exported.stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => (JSON.parse(line) as { _id: string })._id),
    );
    const missing = [...this.#stored].filter((id) => !ids.has(id));
    if (missing.length > 0) this.#complain(`${missing.length} documents are missing afterwards`);
    const deep = await runBinary(['doctor', '--deep', '--json'], { env });
    if (!/"name":"content","ok":true/.test(deep.stdout)) this.#complain(`afterwards ${deep.stdout.slice(0, 1000)}`);
    if ((await service.stop()) !== 0) this.#complain('the server that took over did not end well');
  }

  #complain(text: string): void {
    this.report.violations.push(`${this.name}: ${text}`);
  }
}
