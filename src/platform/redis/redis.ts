import { Redis, type RedisOptions } from 'ioredis';
import type { Logger } from '../observe/logger.js';

/** A Redis that may come and go: commands fail at once while it is away. */
export interface RedisConnection {
  /** Resolves when it answers, throws otherwise: half a second of silence counts as no answer. */
  ping(): Promise<void>;
  client(): Redis;
  /** A connection of its own, as subscriptions need; closed with this one. */
  subscriber(): Redis;
  close(): Promise<void>;
}

const COMMAND_MS = 500;
const MAX_PAUSE_MS = 2_000;

/** Connects, and again whenever the connection is lost; resolves without it when there is none within a second. */
export async function openRedis(url: string, log: Logger): Promise<RedisConnection> {
  let away = false;
  const clients: Redis[] = [];
  const connect = (options: RedisOptions): Redis => {
    const client = new Redis(url, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 1,
      commandTimeout: COMMAND_MS,
      connectTimeout: 2_000,
      retryStrategy: (attempt) => Math.min(attempt * 100, MAX_PAUSE_MS),
      ...options,
    });
    // Without a listener an error would end the process; every attempt has one, the first is enough to know.
    client.on('error', (error: Error) => {
      if (!away) log.warn({ err: error }, 'Redis does not answer; everything goes on without it');
      away = true;
    });
    clients.push(client);
    return client;
  };
  const client = connect({});
  client.on('ready', () => {
    if (away) log.info('Redis answers again');
    away = false;
  });
  await firstAnswer(client);
  return {
    ping: async () => void (await client.ping()),
    client: () => client,
    subscriber: () => connect({ enableOfflineQueue: true, maxRetriesPerRequest: null, commandTimeout: undefined }),
    close() {
      for (const each of clients) each.disconnect();
      return Promise.resolve();
    },
  };
}

const FIRST_ANSWER_MS = 1_000;

async function firstAnswer(client: Redis): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, FIRST_ANSWER_MS);
    for (const event of ['ready', 'error']) {
      client.once(event, () => {
        clearTimeout(timer);
        resolve();
      });
    }
  });
}
