import { plain, PUBLIC, route, say, type RouteList } from '../../http/routes/route.js';
import { object, oneOf, MOMENT, TEXT, type TypeOf } from '../../platform/schema/schema.js';
import { isHanging } from '../../platform/processes/watchdog.js';
import type { App } from '../../app.js';
import { withTimeout } from '../../platform/time/with-timeout.js';
import { VERSION } from '../../package.js';

const HEALTH = object(
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
function checkDatabase({ db }: App): Promise<'connected' | 'disconnected'> {
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

const FINE = object({ status: oneOf('ok') });

/** rest-api.md 4.5, decisions.md 10. */
export const HEALTH_ROUTES: RouteList = {
  prefix: '/api/health',
  tag: 'Service',
  rate: 'free',
  about: 'How the service is, and what describes it.',
  routes: [
    route('GET /api/health', {
      id: 'getHealth',
      summary: 'Get the state of the service and its dependencies',
      access: PUBLIC,
      answers: [plain(HEALTH, 'All well'), plain(HEALTH, 'A dependency is away', 503)],
      async handle({ app }) {
        const health = await checkHealth(app);
        return health.status === 'ok' ? health : say(health, undefined, 503);
      },
    }),
    route('GET /api/health/ready', {
      id: 'getReadiness',
      summary: 'Readiness check',
      access: PUBLIC,
      answers: [
        plain(FINE, 'Ready'),
        plain(
          object({ status: oneOf('disconnected', 'stopping', 'hanging') }),
          'The database is away, the process is stopping, or its main thread did not run for too long just now',
          503,
        ),
      ],
      async handle({ app }) {
        // Without its cache a process serves on.
        if (isHanging()) return say({ status: 'hanging' as const }, undefined, 503);
        const status = app.readiness.isReady() ? await checkDatabase(app) : ('stopping' as const);
        return status === 'connected' ? { status: 'ok' as const } : say({ status }, undefined, 503);
      },
    }),
    route('GET /api/health/live', {
      id: 'getLiveness',
      summary: 'Liveness check',
      access: PUBLIC,
      answers: plain(FINE, 'It does'),
      handle: () => ({ status: 'ok' as const }),
    }),
  ],
};
