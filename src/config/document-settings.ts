import { defaulted } from './setting.js';
import { lifetime, wait, wholeWithin } from './setting-readers.js';

/** Reads of documents, the trash, logs. */
export const DOCUMENT_SETTINGS = {
  queryTimeoutMs: defaulted('BSVC_QUERY_TIMEOUT', wait, 10_000, 'how long one read of documents may take', {
    defaultText: '10s',
  }),
  trashDays: defaulted('BSVC_TRASH_DAYS', wholeWithin(0, 36_500), 30, 'days a trashed document is kept'),
  keepMs: defaulted(
    'BSVC_KEEP',
    lifetime,
    30 * 86_400_000,
    'how long change logs, mail logs and failed webhook deliveries are kept; delivered ones for at most three days',
    { defaultText: '30d' },
  ),
};
