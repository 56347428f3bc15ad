import type { Middleware } from 'koa';
import type { App } from '../../app.js';
import { unavailable } from '../../errors.js';
import { isRestoring } from '../../platform/database/restore-mark.js';

const RETRY_SECONDS = 2;
const ALIVE = '/api/health/live';

/**
 * Answers 503 RESTORING while a backup is being restored, to whatever is asked: what is stored is half of something, in
 * which not even keys can be found.
 */
export function refuseWhileRestoring(app: App): Middleware {
  return (ctx, next) => {
    const restoring = ctx.path === ALIVE ? false : isRestoring(app.db);
    if (restoring === false) return next() as Promise<unknown>;
    if (restoring === true) throw refusal();
    return restoring.then((now) => {
      if (now) throw refusal();
      return next() as Promise<unknown>;
    });
  };
}

const refusal = (): Error =>
  unavailable(
    'RESTORING',
    'A backup is being restored: try again in a moment. If it was interrupted, restore it again',
    {
      retryAfterSeconds: RETRY_SECONDS,
    },
  );
