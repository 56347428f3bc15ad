import type { App } from '../../app.js';
import { missing, unauthenticated } from '../../errors.js';
import { own, route, type Access, type RouteList } from '../../http/routes/route.js';
import { jobStore } from '../../platform/jobs/job.js';
import { formatMetrics, type Metrics } from '../../platform/observe/metrics.js';
import { TEXT } from '../../platform/schema/schema.js';
import { isSameSecret } from '../../platform/ids.js';

const WAITING_STATES = ['queued', 'running', 'dead'] as const;

/** The one secret of the installation; 404 when there is none (decisions.md 10). */
const ADMIN_TOKEN: Access = {
  note: 'The value of `BSVC_ADMIN_TOKEN`.',
  security: [
    [
      {
        name: 'adminToken',
        definition: { type: 'http', scheme: 'bearer', description: 'The value of the setting `BSVC_ADMIN_TOKEN`.' },
      },
    ],
  ],
  errors: { 401: ['AUTH_REQUIRED', 'TOKEN_INVALID'] },
  admit({ config: { adminToken } }, ctx) {
    if (!adminToken) throw missing('NOT_FOUND', 'Set BSVC_ADMIN_TOKEN to enable metrics');
    const token = /^Bearer ([^\s]+)$/i.exec(ctx.get('authorization'))?.[1];
    if (!token) throw unauthenticated('AUTH_REQUIRED', 'Metrics need Authorization: Bearer <admin token>');
    if (!isSameSecret(token, adminToken)) throw unauthenticated('TOKEN_INVALID', 'The admin token is not valid');
    return null;
  },
};

/** Prometheus text. Of several processes of a `serve` any one answers for all. */
export const METRICS_ROUTES: RouteList = {
  prefix: '/metrics',
  tag: 'Service',
  rate: 'operator',
  routes: [
    route('GET /metrics', {
      id: 'getMetrics',
      summary: 'Metrics of all processes, for Prometheus',
      access: ADMIN_TOKEN,
      answers: own(200, 'Prometheus’ text format', { 'text/plain': TEXT }),
      errors: { 404: ['NOT_FOUND'] },
      async handle({ app, ctx }) {
        const parts = app.processGroup ? await app.processGroup.collect('metrics') : [await app.metrics.collect()];
        const { text, contentType } = await formatMetrics(parts as Awaited<ReturnType<Metrics['collect']>>[]);
        ctx.set('Content-Type', contentType);
        ctx.set('Cache-Control', 'no-store');
        ctx.body = text;
      },
    }),
  ],
};

/** Adds the measures of jobs and store, and gives this process's part to the one that is asked for all. */
export function offerMetrics(app: App): void {
  app.processGroup?.onCollect('metrics', () => app.metrics.collect());
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
    () => Object.entries(app.db.stats()).map(([measure, value]) => ({ labels: { measure }, value })),
    { shared: true },
  );
}
