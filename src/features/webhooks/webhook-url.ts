import type { App } from '../../app.js';
import type { Config } from '../../config/config.js';
import { invalid } from '../../errors.js';
import { requirePublicTarget } from '../../platform/network/require-public-target.js';

const MAX_CHARACTERS = 2_048;
const DEVELOPMENT =
  '; http and private addresses only where BSVC_WEBHOOK_ALLOW_PRIVATE=true is set, for the server and for this command';

/**
 * A target address in its normal form; 400 INVALID_URL for one that is not an https address (http too where private
 * targets are allowed), carries a password, or is not public.
 */
export async function requireTargetUrl(app: App, text: string): Promise<string> {
  const url = parseTargetUrl(app.config, text);
  await requirePublicTarget(app.outbound, url, 'url');
  return url.href;
}

/** A target address as far as its text can be judged; 400 INVALID_URL. */
export function parseTargetUrl({ webhookAllowPrivate: allowPrivate }: Config, text: string): URL {
  const url = text.length <= MAX_CHARACTERS && URL.canParse(text) ? new URL(text) : null;
  if (!url || !(url.protocol === 'https:' || (allowPrivate && url.protocol === 'http:'))) {
    throw invalid(
      'INVALID_URL',
      `The url must be an https:// address of at most ${MAX_CHARACTERS} characters${url?.protocol === 'http:' ? DEVELOPMENT : ''}`,
    );
  }
  if (url.username || url.password) {
    throw invalid('INVALID_URL', 'The url must not hold a user name or password: deliveries are signed instead');
  }
  url.hash = '';
  return url;
}
