import type { Middleware } from 'koa';
import type { App } from '../../app.js';
import { unavailable } from '../../errors.js';
import { isRestoring } from '../../platform/database/restore-mark.js';
import { withTimeout } from '../../platform/time/with-timeout.js';

const RETRY_SECONDS = 2;
const HEALTH = '/api/health';
const ALIVE = `${HEALTH}/live`;
const LOOK_LIMIT_MS = 1_000;

/**
 * Answers 503 RESTORING while a backup is being restored, to whatever is asked: what is stored is half of something, in
 * which not even keys can be found. When the database does not answer, `/api/health` and `/ready` say so themselves.
 */
export function rejectWhileRestoring(app: App): Middleware {
  return (ctx, next) => {
    const restoring = ctx.path === ALIVE ? false : isRestoring(app.db);
    if (restoring === false) return next() as Promise<unknown>;
    if (restoring === true) throw refusal();
    return lookFor(ctx.path, restoring).then((now) => {
      if (now) throw refusal();
      return next() as Promise<unknown>;
    });
  };
}

function lookFor(path: string, restoring: Promise<boolean>): Promise<boolean> {
  if (!(path === HEALTH || path.startsWith(`${HEALTH}/`))) return restoring;
  return withTimeout(
    restoring.catch(() => false),
    LOOK_LIMIT_MS,
    false,
  );
}

const refusal = (): Error =>
  unavailable(
    'RESTORING',
    'A backup is being restored: try again in a moment. If it was interrupted, restore it again',
    {
      retryAfterSeconds: RETRY_SECONDS,
    },
  );
