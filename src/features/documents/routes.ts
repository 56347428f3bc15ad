import type { App } from '../../app.js';
import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import { requireKey } from '../access/require-key.js';
import { closeUsers } from './store/close-users.js';
import { addReadRoutes } from './read-routes.js';
import { addWriteRoutes } from './write-routes.js';

const PREFIX = '/api/data';

/**
 * Documents of registered collections (rest-api.md 4.2). Every path below `/api/data` needs a key before anything else
 * is said about it.
 */
export function documentRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);
  addReadRoutes(router, app);
  addWriteRoutes(router, app);
  return { prefix: PREFIX, router, guards: [requireKey(app), closeUsers(PREFIX)] };
}
