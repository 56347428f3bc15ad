import { defaulted } from './setting.js';
import { lifetime, wait, wholeWithin } from './setting-readers.js';

/** Reads of documents, the trash, logs. */
export const DOCUMENT_SETTINGS = {
  queryTimeoutMs: defaulted('BSVC_QUERY_TIMEOUT', wait, 10_000, 'maximum time of a query', {
    defaultText: '10s',
  }),
  trashDays: defaulted('BSVC_TRASH_DAYS', wholeWithin(0, 36_500), 30, 'days until documents in the trash are deleted'),
  keepMs: defaulted(
    'BSVC_KEEP',
    lifetime,
    30 * 86_400_000,
    'retention of change logs, email logs and failed webhook deliveries; delivered ones for at most three days',
    { defaultText: '30d' },
  ),
};
