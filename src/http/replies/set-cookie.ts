import type { Context } from 'koa';
import type { App } from '../../app.js';
import { publicPath } from '../../config/public-path.js';

/** A cookie that no script may read. */
interface HttpOnlyCookie {
  name: string;
  value: string;
  /** As the service's own routes begin; the path of BSVC_PUBLIC_URL is put in front. */
  path: string;
  /** 0 removes it. */
  maxAgeMs: number;
  sameSite: 'Strict' | 'Lax' | 'None';
}

/** True if browsers reach the service by TLS, wherever that ends. */
export function isOverTls(app: Pick<App, 'config'>, ctx: Context): boolean {
  return app.config.publicUrl?.startsWith('https:') || ctx.secure;
}

/** Written by hand: TLS often ends before us, where the cookie library refuses to set a Secure cookie. */
export function setCookie(app: Pick<App, 'config'>, ctx: Context, cookie: HttpOnlyCookie): void {
  const { name, value, path, maxAgeMs, sameSite } = cookie;
  ctx.append(
    'Set-Cookie',
    [
      `${name}=${value}`,
      `Path=${publicPath(app.config) + path || '/'}`,
      `Max-Age=${Math.floor(maxAgeMs / 1000)}`,
      'HttpOnly',
      `SameSite=${sameSite}`,
      ...(isOverTls(app, ctx) ? ['Secure'] : []),
    ].join('; '),
  );
}
