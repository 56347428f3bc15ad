import { Agent, request } from 'node:http';

export interface LoadOutcome {
  /** Requests by status. */
  statuses: Record<number, number>;
  /** Requests that were sent over a connection and got no complete reply. */
  failed: string[];
}

export interface Load {
  /** How many replies have come. */
  replies(): number;
  /** Resolves when all clients have ended. */
  ended: Promise<LoadOutcome>;
  /** No further requests. */
  stop(): void;
}

/**
 * Clients with a keep-alive connection each that send one request after the other until stopped or until nobody listens
 * any more.
 */
export function startLoad(url: string, options: { clients: number; headers?: Record<string, string> }): Load {
  let stopped = false;
  let replies = 0;
  const outcome: LoadOutcome = { statuses: {}, failed: [] };
  const run = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!stopped) {
      try {
        const status = await send(url, agent, options.headers ?? {});
        outcome.statuses[status] = (outcome.statuses[status] ?? 0) + 1;
        replies++;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') break;
        outcome.failed.push((error as Error).message);
      }
    }
    agent.destroy();
  };
  const ended = Promise.all(Array.from({ length: options.clients }, run)).then(() => outcome);
  return { replies: () => replies, ended, stop: () => void (stopped = true) };
}

/** One GET, or one POST of a JSON text; its status when the whole reply has come. */
export function send(
  url: string,
  agent: Agent | false,
  headers: Record<string, string>,
  json?: string,
): Promise<number> {
  const options =
    json === undefined
      ? { agent, headers }
      : { agent, method: 'POST', headers: { ...headers, 'content-type': 'application/json' } };
  return new Promise((resolve, reject) => {
    request(url, options, (reply) => {
      reply.on('error', reject).on('end', () => resolve(reply.statusCode!));
      reply.resume();
    })
      .on('error', reject)
      .end(json);
  });
}
