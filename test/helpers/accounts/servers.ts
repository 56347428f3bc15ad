import { startService, type RunningService } from '../run-binary.js';
import type { Random } from '../random.js';

export interface Reply {
  status: number;
  headers: Headers;
  body: {
    code?: string;
    accessToken?: string;
    user?: { _id: string; email?: string };
    data?: Record<string, unknown>;
    [name: string]: unknown;
  };
}

export interface Sent {
  method?: string;
  path: string;
  body?: object;
  token?: string;
  key: string;
  headers?: Record<string, string>;
}

/** Serving processes over one store, any of which may be killed at any moment and comes back. */
export interface Servers {
  /** Null when the process was killed under the request. */
  send(sent: Sent, at?: number): Promise<Reply | null>;
  /** Kills the process that the next request goes to, while it is answered. */
  killDuringNext(): void;
  kills: number;
  requests: number;
  stop(): Promise<void>;
}

/** The time by which most requests are somewhere in the middle. */
const LONGEST_DELAY_MS = 8;

export async function startServers(env: Record<string, string>, count: number, random: Random): Promise<Servers> {
  const start = (): Promise<RunningService> => startService(['serve', '--port', '0', '--no-worker'], env);
  const running: (RunningService | null)[] = await Promise.all(Array.from({ length: count }, start));
  const restarts = new Set<Promise<void>>();
  let isKilling = false;

  const restart = async (at: number): Promise<void> => {
    const { process } = running[at]!;
    running[at] = null;
    process.kill('SIGKILL');
    servers.kills++;
    running[at] = await start();
  };
  const kill = (at: number): void => {
    const restarted: Promise<void> = restart(at).finally(() => restarts.delete(restarted));
    restarts.add(restarted);
  };
  const servers: Servers = {
    kills: 0,
    requests: 0,
    killDuringNext: () => void (isKilling = true),
    async send({ method = 'POST', path, body, token, key, headers = {} }, wanted = random.below(count)) {
      let at = wanted;
      while (!running[at % count]) {
        if (running.some(Boolean)) at++;
        else await Promise.race(restarts);
      }
      at %= count;
      const { url } = running[at]!.ready;
      servers.requests++;
      const reply = fetch(`${url}${path.startsWith('/api') ? '' : '/api/userAuth'}${path}`, {
        method,
        redirect: 'manual',
        headers: {
          'x-api-key': key,
          'content-type': 'application/json',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }).then(async (answer) => {
        const text = await answer.text();
        const json = (text.startsWith('{') ? JSON.parse(text) : {}) as Reply['body'];
        return { status: answer.status, headers: answer.headers, body: json };
      });
      if (isKilling) {
        isKilling = false;
        setTimeout(() => kill(at), random.below(LONGEST_DELAY_MS));
      }
      return reply.catch((error: unknown) => {
        if (error instanceof TypeError || error instanceof SyntaxError) return null;
        throw error;
      });
    },
    async stop() {
      await Promise.all(restarts);
      await Promise.all(running.flatMap((service) => service?.stop() ?? []));
    },
  };
  return servers;
}
