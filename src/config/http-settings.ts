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
  publicUrl: optional('BSVC_PUBLIC_URL', baseUrl, 'address under which clients reach the service', {
    defaultText: 'from host and port',
  }),
  publicDir: optional('BSVC_PUBLIC_DIR', asIs, 'folder of a front end, served at `/` beside the API'),
  publicSpa: defaulted(
    'BSVC_PUBLIC_SPA',
    trueOrFalse,
    false,
    'answer pages that the folder does not have with its index.html, for a front end that does its own routing',
  ),
  rateLimit: defaulted(
    'BSVC_RATE_LIMIT',
    parseRate,
    { count: 100, windowMs: 15 * 60_000 },
    'requests of one client address without a signed-in user; `off` switches off, also the limit of users',
    { defaultText: '100/15m' },
  ),
  userRateLimit: defaulted(
    'BSVC_USER_RATE_LIMIT',
    parseRate,
    { count: 3000, windowMs: 15 * 60_000 },
    'requests of one signed-in user, which count by no address; `off` switches off',
    { defaultText: '3000/15m' },
  ),
  secretRateLimit: defaulted(
    'BSVC_SECRET_RATE_LIMIT',
    parseRate,
    null,
    'requests of one project with its secret key, which count by no address',
    { defaultText: 'off' },
  ),
  authRateLimit: defaulted(
    'BSVC_AUTH_RATE_LIMIT',
    parseRate,
    { count: 20, windowMs: 15 * 60_000 },
    'sign-ins and the like of one client address, three times as many refreshes; `off` switches off',
    { defaultText: '20/15m' },
  ),
  anonymousRateLimit: defaulted(
    'BSVC_ANONYMOUS_RATE_LIMIT',
    parseRate,
    { count: 5, windowMs: 15 * 60_000 },
    'guests that one client address may make, where a project has them; `off` switches off',
    { defaultText: '5/15m' },
  ),
  trustProxy: defaulted(
    'BSVC_TRUST_PROXY',
    wholeWithin(0, 10),
    0,
    'number of proxies in front whose X-Forwarded-For entries count',
  ),
};
