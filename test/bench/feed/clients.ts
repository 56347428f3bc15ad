import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Answer, Command } from './stream-clients.js';

/** Clients of streams in another process. */
export interface Clients {
  ask(command: Command): Promise<Answer>;
  stop(): Promise<void>;
}

export function startClients(): Clients {
  const child = fork(join(import.meta.dirname, 'stream-clients.ts'), { execArgv: ['--import', 'tsx'] });
  return {
    async ask(command) {
      const answered = once(child, 'message') as Promise<[Answer]>;
      child.send(command);
      const [answer] = await answered;
      return answer;
    },
    async stop() {
      child.disconnect();
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

/** A request for the changes of `items` from now on, as bytes of HTTP. */
export function changesRequest(key: string, query: string, headers: readonly string[] = []): string {
  const lines = [
    `GET /api/data/items/changes?${query}&since=now HTTP/1.1`,
    'Host: bench',
    'Accept: text/event-stream',
    `x-api-key: ${key}`,
    ...headers,
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}
