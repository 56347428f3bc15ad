import type { App } from '../../app.js';
import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import { checkDatabase, checkHealth } from './check-health.js';

/** rest-api.md 4.5, decisions.md 10. */
export function healthRoutes(app: App): RouteGroup {
  const router = createRouter('/api/health');
  router.get('/', async (ctx) => {
    const health = await checkHealth(app);
    ctx.status = health.status === 'ok' ? 200 : 503;
    ctx.body = health;
  });
  router.get('/ready', async (ctx) => {
    // Without its cache a process serves on.
    const status = app.readiness.isReady() ? await checkDatabase(app) : 'stopping';
    ctx.status = status === 'connected' ? 200 : 503;
    ctx.body = { status: status === 'connected' ? 'ok' : status };
  });
  router.get('/live', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  return { prefix: '/api/health', router };
}
