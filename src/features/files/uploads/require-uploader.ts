import type { Middleware } from 'koa';
import { callerOf, requireSecretKey } from '../../access/require-key.js';

/**
 * Guard after requireKey: 403 SECRET_KEY_REQUIRED for a publishable key, unless the project lets those upload
 * (decisions.md 6).
 */
export function requireUploader(): Middleware {
  const secretOnly = requireSecretKey();
  return (ctx, next) => (callerOf(ctx).project.storage?.publishableUploads ? next() : secretOnly(ctx, next));
}
