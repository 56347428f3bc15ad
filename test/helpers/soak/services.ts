import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { eventually } from '../eventually.js';
import { findFreePort } from '../listen.js';
import { childrenOf, isAlive } from '../process-tree.js';
import { startService, type RunningService } from '../run-binary.js';

const API_PROCESSES = 2;
const WORKERS = 2;

/**
 * What can be killed; `everything` is what a power cut does, `database` exists only where the database is a process of
 * its own.
 */
export type Victim = 'supervisor' | 'api' | 'worker' | 'everything' | 'database';

/** The real processes of one installation. */
export interface Services {
  url: string;
  /** Kills (SIGKILL), starts again, and answers how long it took from the start to a healthy service, milliseconds. */
  kill(victim: Victim, index: number): Promise<number>;
  /** Stops all with SIGTERM; their exit codes. */
  stop(): Promise<(number | null)[]>;
  /** Kills whatever runs. */
  destroy(): Promise<void>;
  /** What they logged so far, warnings and errors, by message. */
  logged(): Map<string, number>;
  /** What processes did that they may not. */
  problems: string[];
}

export interface ServiceEnvironment {
  /** Of the API and the workers. */
  env: Record<string, string>;
  /** Of the process that keeps the data, where there is one. */
  databaseEnv: Record<string, string> | null;
}

/**
 * Starts `serve` with two processes and two workers; with `databaseEnv` also a `serve` of its own that is
 * their MongoDB.
 */
export async function startServices({ env, databaseEnv }: ServiceEnvironment): Promise<Services> {
  const port = String(await findFreePort());
  const lines = new Map<string, number>();
  const problems: string[] = [];
  const start = {
    database: () => startService(['serve', '--port', '0', '--no-worker'], databaseEnv!),
    api: () => startService(['serve', '--port', port, '--no-worker', '--processes', String(API_PROCESSES)], env),
    worker: () => startService(['worker'], env),
  };
  const url = `http://127.0.0.1:${port}`;
  const isHealthy = async (): Promise<boolean> => {
    const reply = await fetch(`${url}/api/health`, { headers: { connection: 'close' } }).catch(() => null);
    await reply?.arrayBuffer().catch(() => undefined);
    return reply?.status === 200;
  };
  const healthy = (): Promise<unknown> => eventually('the service is healthy', isHealthy);
  const running = {
    database: databaseEnv && (await start.database()),
    api: await start.api(),
    workers: await Promise.all(Array.from({ length: WORKERS }, start.worker)),
  };
  await healthy();

  const note = (service: RunningService): void => {
    for (const line of service.stderr().split('\n')) {
      const message = readMessage(line);
      if (message) lines.set(message, (lines.get(message) ?? 0) + 1);
    }
  };
  const end = async (service: RunningService): Promise<void> => {
    const { process: child } = service;
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    note(service);
  };
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const begun = performance.now();
    await work();
    return performance.now() - begun;
  };

  /** The serving processes have to notice by themselves that the one that started them is gone. */
  const endSupervisor = async (): Promise<void> => {
    const shares = childrenOf(running.api.ready.pid);
    await end(running.api);
    await eventually('they end', () => !shares.some(isAlive)).catch(() => undefined);
    for (const pid of shares.filter(isAlive)) {
      problems.push(`process ${pid} lives on without the supervisor that was killed: ${describeThreads(pid)}`);
      process.kill(pid, 'SIGKILL');
    }
  };
  const startApi = async (): Promise<void> => {
    running.api = await start.api();
    await healthy();
  };
  const kills: Record<Victim, (index: number) => Promise<number>> = {
    async supervisor() {
      await endSupervisor();
      return timed(startApi);
    },
    async api(index) {
      const { pid } = running.api.ready;
      const victim = childrenOf(pid)[index % API_PROCESSES];
      if (victim === undefined) return 0;
      process.kill(victim, 'SIGKILL');
      return timed(async () => {
        await eventually('a killed process is replaced', () => {
          const shares = childrenOf(pid);
          return shares.length === API_PROCESSES && !shares.includes(victim);
        });
        await healthy();
      });
    },
    async worker(index) {
      const at = index % WORKERS;
      await end(running.workers[at]!);
      return timed(async () => (running.workers[at] = await start.worker()));
    },
    async database() {
      if (!running.database) return 0;
      await end(running.database);
      return timed(async () => {
        running.database = await start.database();
        await healthy();
      });
    },
    async everything() {
      const both = [...running.workers, ...(running.database ? [running.database] : [])];
      await Promise.all([endSupervisor(), ...both.map(end)]);
      return timed(async () => {
        running.database &&= await start.database();
        const workers = Promise.all(running.workers.map(start.worker));
        await startApi();
        running.workers = await workers;
      });
    },
  };
  const all = (): RunningService[] => [running.api, ...running.workers];
  return {
    url,
    kill: (victim, index) => kills[victim](index),
    async stop() {
      const codes = await Promise.all(all().map((service) => service.stop('SIGTERM')));
      if (running.database) codes.push(await running.database.stop('SIGTERM'));
      for (const service of all()) note(service);
      return codes;
    },
    async destroy() {
      const shares = childrenOf(running.api.ready.pid);
      await Promise.all([...all(), ...(running.database ? [running.database] : [])].map(end));
      for (const pid of shares.filter(isAlive)) process.kill(pid, 'SIGKILL');
    },
    logged: () => lines,
    problems,
  };
}

const WARNING = 40;

function readMessage(line: string): string | null {
  if (!line.startsWith('{')) return line.trim() === '' ? null : line.slice(0, 200);
  const { level, msg, err } = JSON.parse(line) as { level: number; msg?: string; err?: { message?: string } };
  return level >= WARNING ? `${msg ?? ''}${err?.message ? `: ${err.message.slice(0, 150)}` : ''}` : null;
}

/** What each thread of a process waits for, as the kernel tells. */
function describeThreads(pid: number): string {
  const read = (path: string): string => {
    try {
      return readFileSync(`/proc/${pid}/task/${path}`, 'utf8').trim();
    } catch {
      return '';
    }
  };
  return readdirSync(`/proc/${pid}/task`)
    .map((thread) => `${read(`${thread}/comm`)} in ${read(`${thread}/wchan`)} (${read(`${thread}/syscall`)})`)
    .join('; ');
}
