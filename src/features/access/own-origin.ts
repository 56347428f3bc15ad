import type { Context } from 'koa';
import type { App } from '../../app.js';

/** Where the service is, as clients reach it: without BSVC_PUBLIC_URL as this request did. */
export function ownAddress({ config }: Pick<App, 'config'>, ctx: Context): string {
  return config.publicUrl ?? `${ctx.protocol}://${ctx.host}`;
}

/** True if an `Origin` is the service's own: that of BSVC_PUBLIC_URL, or the address that the request was sent to. */
export function isOwnOrigin(app: Pick<App, 'config'>, ctx: Context, origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { publicUrl } = app.config;
  if (publicUrl !== null && origin === new URL(publicUrl).origin) return true;
  // TLS may end before us: then https is what the browser sees of the same host.
  return origin === `${ctx.protocol}://${ctx.host}` || origin === `https://${ctx.host}`;
}
