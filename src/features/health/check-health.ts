import type { App } from '../../app.js';
import { MOMENT, object, oneOf, TEXT, type TypeOf } from '../../platform/schema/schema.js';
import { withTimeout } from '../../platform/time/with-timeout.js';
import { VERSION } from '../../package.js';

export const HEALTH = object(
  {
    status: oneOf('ok', 'error'),
    timestamp: MOMENT,
    version: TEXT,
    dependencies: object({
      database: oneOf('connected', 'disconnected'),
      cache: oneOf('connected', 'embedded', 'disabled', 'disconnected'),
    }),
  },
  'Health',
);
type Health = TypeOf<typeof HEALTH>;

const PING_LIMIT_MS = 3_000;

/** Asks the dependencies; an answer that takes longer than three seconds counts as none. */
export async function checkHealth(app: App): Promise<Health> {
  const [database, cache] = await Promise.all([checkDatabase(app), checkCache(app)]);
  return {
    status: database === 'connected' && cache !== 'disconnected' ? 'ok' : 'error',
    timestamp: new Date(app.clock.now()).toISOString(),
    version: VERSION,
    dependencies: { database, cache },
  };
}

/** The one dependency without which nothing can be served. */
export function checkDatabase({ db }: App): Promise<'connected' | 'disconnected'> {
  return reach(db.ping());
}

async function checkCache({ db, redis }: App): Promise<Health['dependencies']['cache']> {
  if (redis) return reach(redis.ping());
  return db.kind === 'embedded' ? 'embedded' : 'disabled';
}

function reach(ping: Promise<void>): Promise<'connected' | 'disconnected'> {
  const answer = ping.then(
    () => 'connected' as const,
    () => 'disconnected' as const,
  );
  return withTimeout(answer, PING_LIMIT_MS, 'disconnected');
}
