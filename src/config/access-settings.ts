import { defaulted, optional } from './setting.js';
import { asIs, lifetime, trueOrFalse, wholeWithin } from './setting-readers.js';

/** Keys, tokens, passwords, the console. */
export const ACCESS_SETTINGS = {
  secretKey: optional(
    'BSVC_SECRET_KEY',
    asIs,
    'master key that seals stored secrets; several, comma-separated, newest first',
    {
      secret: true,
      defaultText: 'generated into the data directory; required with `MONGODB_URI`',
    },
  ),
  accessTokenTtlMs: defaulted('BSVC_ACCESS_TOKEN_TTL', lifetime, 15 * 60_000, 'how long an access token works', {
    defaultText: '15m',
  }),
  refreshTokenTtlMs: defaulted(
    'BSVC_REFRESH_TOKEN_TTL',
    lifetime,
    7 * 86_400_000,
    'how long a session lasts after its last refresh',
    { defaultText: '7d' },
  ),
  bcryptCost: defaulted(
    'BSVC_BCRYPT_COST',
    wholeWithin(4, 15),
    10,
    'work factor of stored passwords: one more doubles it',
  ),
  console: defaulted('BSVC_CONSOLE', trueOrFalse, true, 'the operators’ console at /console', { defaultText: 'on' }),
  crossSiteCookies: defaulted(
    'BSVC_CROSS_SITE_COOKIES',
    trueOrFalse,
    false,
    'let pages of other sites use the refresh cookie (SameSite=None); needs an https BSVC_PUBLIC_URL',
  ),
};
