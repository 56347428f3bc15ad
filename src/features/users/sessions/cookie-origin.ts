import type { Context } from 'koa';
import type { App } from '../../../app.js';
import { unauthenticated } from '../../../errors.js';
import { admitsOrigin } from '../../access/admits-origin.js';
import { isOwnOrigin } from '../../access/own-origin.js';
import type { Project } from '../../projects/project.js';

/**
 * Refuses a cookie that a page of another site may have caused the browser to send: it counts without an `Origin`, for
 * the service's own, and for one that the project's allowlist names (decisions.md 2). The cookie stays as it is. 401
 * COOKIE_NOT_ACCEPTED with the command that changes it.
 */
export function requireCookieOrigin(app: App, ctx: Context, project: Project): void {
  const origin = ctx.get('Origin');
  if (origin === '' && ctx.get('sec-fetch-site') === 'cross-site') {
    throw notAccepted('The refresh cookie does not count for a request of another site');
  }
  if (origin === '' || isOwnOrigin(app, ctx, origin)) return;
  const named = project.allowedDomains.filter((entry) => entry !== '*');
  const admitsAll = named.length < project.allowedDomains.length;
  if (admitsAll && app.config.crossSiteCookies) {
    throw notAccepted(
      `With BSVC_CROSS_SITE_COOKIES the refresh cookie does not count for pages of other origins while the project admits *: ${nameThem(project, named, origin)}`,
    );
  }
  if (admitsOrigin(named, origin)) return;
  throw notAccepted(
    `The refresh cookie counts only for origins that the project names, not by *: ${nameThem(project, named, origin)}`,
  );
}

const MAX_SHOWN = 200;

/** The command that lists exactly the origins named so far, and this one. */
function nameThem(project: Project, named: readonly string[], origin: string): string {
  const shown = URL.canParse(origin) ? origin.slice(0, MAX_SHOWN) : 'https://app.example.com';
  const entries = [...new Set([...named.slice(0, 10), shown])];
  return `bsvc project update ${project.name} ${entries.map((entry) => `--allowed-domain ${JSON.stringify(entry)}`).join(' ')}`;
}

function notAccepted(message: string): Error {
  return unauthenticated('COOKIE_NOT_ACCEPTED', message);
}
