import { isIP } from 'node:net';
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
  if (publicUrl === null && !isOwnName(ctx.hostname)) return false;
  // TLS may end before us: then https is what the browser sees of the same host.
  return origin === `${ctx.protocol}://${ctx.host}` || origin === `https://${ctx.host}`;
}

/** Names that cannot be pointed here by others: `evil.example` may be pointed at any address by its owner. */
const LOCAL_NAME = /^(?:[^.:]+|.+\.(?:local|localhost|lan|internal|home\.arpa))$/i;

/** True for a host by which a browser reaches this service only where its operator has seen to that. */
export function isOwnName(hostname: string): boolean {
  return isIP(hostname.replace(/^\[|\]$/g, '')) !== 0 || LOCAL_NAME.test(hostname);
}
