import { defaulted, optional } from './setting.js';
import { asIs, baseUrl, parseRate, trueOrFalse, wholeWithin } from './setting-readers.js';

/** Where the service listens, and how many requests one address may send. */
export const HTTP_SETTINGS = {
  host: defaulted(
    'BSVC_HOST',
    asIs,
    '127.0.0.1',
    'address to listen on, or `unix:/run/bsvc.sock` for a socket that a proxy of the same group may open',
  ),
  port: defaulted(
    'BSVC_PORT',
    wholeWithin(0, 65_535),
    4000,
    'port to listen on; 0 = any free one; unset, it is `PORT` of the environment, as hosting platforms set it',
    { otherEnv: 'PORT' },
  ),
  publicUrl: optional('BSVC_PUBLIC_URL', baseUrl, 'public URL of the server', {
    defaultText: 'from host and port',
  }),
  publicDir: optional('BSVC_PUBLIC_DIR', asIs, 'folder of a front end to serve at `/`'),
  publicSpa: defaulted(
    'BSVC_PUBLIC_SPA',
    trueOrFalse,
    false,
    'serve index.html for unknown pages, for front ends with client-side routing',
  ),
  rateLimit: defaulted(
    'BSVC_RATE_LIMIT',
    parseRate,
    { count: 100, windowMs: 15 * 60_000 },
    'rate limit of anonymous requests per client address; a signed-in user gets 30 times as many, from any address; `off` disables both',
    { defaultText: '100/15m' },
  ),
  secretRateLimit: defaulted(
    'BSVC_SECRET_RATE_LIMIT',
    parseRate,
    null,
    'rate limit of a project’s requests with the secret key, whatever the address',
    { defaultText: 'off' },
  ),
  authRateLimit: defaulted(
    'BSVC_AUTH_RATE_LIMIT',
    parseRate,
    { count: 20, windowMs: 15 * 60_000 },
    'rate limit of sign-ups and sign-ins per client address, three times as many refreshes; `off` disables it',
    { defaultText: '20/15m' },
  ),
  anonymousRateLimit: defaulted(
    'BSVC_ANONYMOUS_RATE_LIMIT',
    parseRate,
    { count: 5, windowMs: 15 * 60_000 },
    'rate limit of new anonymous users per client address; `off` disables it',
    { defaultText: '5/15m' },
  ),
  trustProxy: defaulted(
    'BSVC_TRUST_PROXY',
    wholeWithin(0, 10),
    0,
    'number of proxies in front of the server; as many X-Forwarded-For entries are trusted',
  ),
};
