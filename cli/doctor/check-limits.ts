import type { Config } from '../../src/config/config.js';
import { sayDuration, type Rate } from '../../src/config/setting-readers.js';
import { passed, type CheckResult } from './check.js';

/** Says what the limits of requests mean for people who share one address, such as an office. */
export function checkLimits(config: Pick<Config, 'rateLimit' | 'userRateLimit' | 'authRateLimit'>): CheckResult {
  const { rateLimit, userRateLimit, authRateLimit } = config;
  const parts = [
    `without a user ${say(rateLimit, 'requests')}`,
    `${say(authRateLimit, 'sign-ins')} (BSVC_AUTH_RATE_LIMIT), for all people of an office together`,
    `each signed-in user ${say(rateLimit && userRateLimit, 'requests')} of their own`,
  ];
  return passed('limits', `one address: ${parts.join('; ')}`);
}

function say(rate: Rate | null, what: string): string {
  return rate ? `${rate.count} ${what} in ${sayDuration(rate.windowMs)}` : `any number of ${what}`;
}
