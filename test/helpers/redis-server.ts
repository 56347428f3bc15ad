import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { findFreePort } from './listen.js';

/** Whether a `redis-server` can be started here; tests that need one say that they were skipped otherwise. */
export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

export interface RedisServer {
  url: string;
  /** Kills it, as a crash does. */
  kill(): Promise<void>;
  /** Lets it hang: connections stay, nothing is answered. */
  pause(): void;
  resume(): void;
  /** Starts it anew, empty, at the same port. */
  restart(): Promise<void>;
}

/** A Redis of the test's own on a free port, without any file. */
export async function startRedis(): Promise<RedisServer> {
  const port = await findFreePort();
  let server: ChildProcess = await launch(port);
  const kill = async (): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill('SIGKILL');
    await once(server, 'exit');
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    kill,
    pause: () => void server.kill('SIGSTOP'),
    resume: () => void server.kill('SIGCONT'),
    async restart() {
      await kill();
      server = await launch(port);
    },
  };
}

async function launch(port: number): Promise<ChildProcess> {
  const words = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', tmpdir()];
  const child = spawn('redis-server', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error('redis-server ended')));
    child.stdout.on('data', (text: Buffer) => {
      if (text.includes('Ready to accept connections')) resolve();
    });
  });
  return child;
}
