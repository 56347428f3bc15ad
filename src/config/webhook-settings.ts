import { defaulted } from './setting.js';
import { lifetime, parseBytes } from './setting-readers.js';

/** What is kept of webhooks. */
export const WEBHOOK_SETTINGS = {
  deliveriesKeepMs: defaulted(
    'BSVC_DELIVERIES_KEEP',
    lifetime,
    3 * 86_400_000,
    'time webhook deliveries are kept that were delivered; failed ones for 30 days',
    { defaultText: '3d' },
  ),
  deliveriesMaxBytes: defaulted(
    'BSVC_DELIVERIES_MAX',
    parseBytes,
    1024 ** 3,
    'bytes of webhook deliveries of a project, with what they send; beyond it the oldest that were delivered are removed, then the oldest that failed',
    { defaultText: '1gb' },
  ),
};
