import { defaulted, optional } from './setting.js';
import { asIs, lifetime, trueOrFalse, wholeWithin } from './setting-readers.js';

/** Keys, tokens, passwords, the console. */
export const ACCESS_SETTINGS = {
  secretKey: optional(
    'BSVC_SECRET_KEY',
    asIs,
    'master key that encrypts stored secrets; several, comma-separated, newest first',
    {
      secret: true,
      defaultText: 'generated into the data directory; required with `MONGODB_URI`',
    },
  ),
  accessTokenTtlMs: defaulted('BSVC_ACCESS_TOKEN_TTL', lifetime, 15 * 60_000, 'lifetime of access tokens', {
    defaultText: '15m',
  }),
  refreshTokenTtlMs: defaulted(
    'BSVC_REFRESH_TOKEN_TTL',
    lifetime,
    7 * 86_400_000,
    'lifetime of a session after its last refresh',
    { defaultText: '7d' },
  ),
  bcryptCost: defaulted(
    'BSVC_BCRYPT_COST',
    wholeWithin(4, 15),
    10,
    'bcrypt cost of passwords: one more doubles the time of a sign-in',
  ),
  console: defaulted('BSVC_CONSOLE', trueOrFalse, true, 'serve the console at /console', { defaultText: 'on' }),
  crossSiteCookies: defaulted(
    'BSVC_CROSS_SITE_COOKIES',
    trueOrFalse,
    false,
    'allow other sites to use the refresh cookie (SameSite=None); needs an https BSVC_PUBLIC_URL',
  ),
};
