import type { Middleware } from 'koa';
import type { App } from '../../app.js';
import { missing, unauthenticated } from '../../errors.js';
import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import { isSameSecret } from '../../platform/secrets/is-same-secret.js';
import { jobStore } from '../../platform/jobs/job.js';
import { formatMetrics, type Metrics } from '../../platform/observe/metrics.js';

const PREFIX = '/metrics';
const WAITING_STATES = ['queued', 'running', 'dead'] as const;

/**
 * Prometheus text for who has `BSVC_ADMIN_TOKEN`; 404 when there is none (decisions.md 10). Of several processes of a
 * `serve` any one answers for all.
 */
export function metricsRoutes(app: App): RouteGroup {
  describeStore(app);
  app.processGroup?.onGather(() => app.metrics.collect());
  const router = createRouter(PREFIX);
  router.get('/', requireAdminToken(app), async (ctx) => {
    const parts = app.processGroup ? await app.processGroup.gather() : [await app.metrics.collect()];
    const { text, contentType } = await formatMetrics(parts as Awaited<ReturnType<Metrics['collect']>>[]);
    ctx.set('Content-Type', contentType);
    ctx.set('Cache-Control', 'no-store');
    ctx.body = text;
  });
  return { prefix: PREFIX, router };
}

function describeStore(app: App): void {
  app.metrics.gauge(
    'jobs',
    'Background jobs by state',
    () =>
      Promise.all(
        WAITING_STATES.map(async (state) => ({
          labels: { state },
          value: await jobStore(app).countDocuments({ state }, { maxTimeMS: 1_000 }),
        })),
      ),
    { shared: true },
  );
  app.metrics.gauge(
    'database',
    'Measures of the embedded store',
    () =>
      Object.entries(app.db.stats?.() ?? {}).map(([measure, value]) => ({ labels: { measure }, value: Number(value) })),
    { shared: true },
  );
}

function requireAdminToken(app: App): Middleware {
  return (ctx, next) => {
    const { adminToken } = app.config;
    if (!adminToken) throw missing('NOT_FOUND', 'Metrics are shown when BSVC_ADMIN_TOKEN is set');
    const token = /^Bearer ([^\s]+)$/i.exec(ctx.get('authorization'))?.[1];
    if (!token) throw unauthenticated('AUTH_REQUIRED', 'Metrics need Authorization: Bearer <admin token>');
    if (!isSameSecret(token, adminToken)) throw unauthenticated('TOKEN_INVALID', 'The admin token is not valid');
    return next();
  };
}
