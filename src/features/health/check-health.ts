import type { App } from '../../app.js';
import { VERSION } from '../../version.js';

export interface Health {
  status: 'ok' | 'error';
  timestamp: string;
  version: string;
  dependencies: {
    database: 'connected' | 'disconnected';
    cache: 'connected' | 'embedded' | 'disabled' | 'disconnected';
  };
}

const PING_LIMIT_MS = 3_000;

/** Asks the dependencies; an answer that takes longer than three seconds counts as none. */
export async function checkHealth(app: App): Promise<Health> {
  const database = await isReached(app.db.ping());
  const cache = app.redis?.state() ?? (app.db.kind === 'embedded' ? 'embedded' : 'disabled');
  return {
    status: database && cache !== 'disconnected' ? 'ok' : 'error',
    timestamp: new Date(app.clock.now()).toISOString(),
    version: VERSION,
    dependencies: {
      database: database ? 'connected' : 'disconnected',
      cache,
    },
  };
}

async function isReached(ping: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), PING_LIMIT_MS);
  });
  try {
    return await Promise.race([ping.then(() => true), tooLate]);
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}
