import { OPERATOR_SESSIONS } from '../../src/features/access/operator.js';
import { AUDIT_LOG, MAX_AUDITED_CHARACTERS, MAX_AUDITED_VALUES } from '../../src/features/audit/audit-log.js';
import { DRAFT_MS } from '../../src/features/backups/backup-place.js';
import { SERVICE_RECORDS } from '../../src/features/backups/keep-backup.js';
import { UNCONFIRMED_MS } from '../../src/features/files/file.js';
import { MOST_SEEN, KEPT_DAYS, MOST_KEPT } from '../../src/features/series/requests/recent-requests.js';
import { KEPT_HOURS } from '../../src/features/series/series.js';
import { KEPT_AFTER_END_MS, WITH_AN_END } from '../../src/features/users/remove-records.job.js';
import { WEBHOOK_DELIVERIES } from '../../src/features/webhooks/deliveries/delivery.js';
import { WEBHOOK_PAYLOADS } from '../../src/features/webhooks/deliveries/payload.js';
import { WEBHOOK_EVENTS } from '../../src/features/webhooks/webhook-event.js';
import { KEY_KEPT_MS } from '../../src/http/routes/idempotency-key.js';
import type { Database } from '../../src/platform/database/database.js';
import { MAIL_OUTBOX } from '../../src/platform/mail-provider/outbox.js';
import { DEAD_JOB_DAYS } from '../../src/platform/jobs/complete-job.js';
import { countOf, presentBytes } from '../view/present.js';
import { passed, type CheckResult } from './check.js';

/** What the service keeps of its own accord, beside documents, files and accounts. */
interface RetainedData {
  what: string;
  /** Stored collections, none for what is a file or in memory. */
  stores: readonly string[];
  /** For how long, by the constants and settings that the sweeps go by. */
  time: string;
  /** How much at most. */
  size: string;
}

const hours = (ms: number): string => `${ms / 3_600_000} hours`;
const minutes = (ms: number): string => `${ms / 60_000} minutes`;
const NO_BOUND = 'none of its own';

/** The guide's table and `bsvc doctor` are made from this list. */
export const RETAINED_DATA: readonly RetainedData[] = [
  {
    what: 'webhook deliveries and their payloads',
    stores: [WEBHOOK_DELIVERIES, WEBHOOK_EVENTS, WEBHOOK_PAYLOADS],
    time: 'delivered: 3 days, the payload a day; failed: `BSVC_KEEP`',
    size: '1 GB a project; what waits is not removed',
  },
  {
    what: 'logs of changes',
    stores: ['change_log'],
    time: '`BSVC_KEEP`, or what the collection says',
    size: '64 MB a collection, or its documents where they are more; of a project a quarter of what its plan grants',
  },
  {
    what: 'mail logs',
    stores: ['mail_logs'],
    time: '`BSVC_KEEP` after they were sent or failed',
    size: 'the database that the plan grants',
  },
  {
    what: 'mails kept instead of sent, without a mail provider',
    stores: [MAIL_OUTBOX],
    time: '`BSVC_KEEP`',
    size: 'mails that its plan lets a project send, and those of its accounts',
  },
  { what: 'events of the mail provider', stores: ['mail_events'], time: '30 days', size: NO_BOUND },
  {
    what: 'audit log',
    stores: [AUDIT_LOG],
    time: '400 days',
    size: `none of its own; an entry has at most ${MAX_AUDITED_VALUES} values of ${MAX_AUDITED_CHARACTERS} characters`,
  },
  {
    what: 'jobs',
    stores: ['jobs'],
    time: `dead ones: ${DEAD_JOB_DAYS} days; done ones: at once, or as long as their key counts`,
    size: NO_BOUND,
  },
  { what: 'idempotency keys', stores: ['idempotency_keys'], time: hours(KEY_KEPT_MS), size: NO_BOUND },
  {
    what: 'sessions, tickets, mailed codes, counts of mails, failed sign-ins',
    stores: WITH_AN_END,
    time: `${hours(KEPT_AFTER_END_MS)} after their end`,
    size: NO_BOUND,
  },
  { what: 'sessions of operators', stores: [OPERATOR_SESSIONS], time: 'until their end', size: NO_BOUND },
  {
    what: 'figures over time',
    stores: ['series_hours'],
    time: `${KEPT_HOURS / 24} days`,
    size: `${KEPT_HOURS} records`,
  },
  {
    what: 'uploads that were never confirmed',
    stores: [],
    time: minutes(UNCONFIRMED_MS),
    size: 'the storage that the plan grants',
  },
  {
    what: 'drafts of backups that were killed',
    stores: [],
    time: `until a later backup, ${minutes(DRAFT_MS)} at least`,
    size: 'a backup each',
  },
  {
    what: 'requests that failed or took a second',
    stores: ['kept_requests'],
    time: `${KEPT_DAYS} days, removed with the next`,
    size: `${MOST_KEPT} requests`,
  },
  { what: 'requests shown at the console', stores: [], time: 'in memory', size: `${MOST_SEEN} a process` },
  {
    what: 'records of backups',
    stores: ['backups'],
    time: 'as long as they are few',
    size: `${SERVICE_RECORDS} records`,
  },
];

/** The sizes of what is kept, the largest first. */
export async function checkRetained(db: Database): Promise<CheckResult> {
  const measured = await Promise.all(
    RETAINED_DATA.map(async ({ what, stores }) => {
      const sizes = await Promise.all(stores.map((name) => db.measure(name)));
      const documents = sizes.reduce((sum, size) => sum + size.documents, 0);
      return { what, documents, bytes: sizes.reduce((sum, size) => sum + size.bytes, 0) };
    }),
  );
  const kept = measured.filter(({ documents }) => documents > 0).sort((a, b) => b.bytes - a.bytes);
  if (kept.length === 0) return passed('kept', 'nothing yet');
  const parts = kept.map(
    ({ what, documents, bytes }) => `${what} ${presentBytes(bytes)} (${countOf(documents, 'record')})`,
  );
  return passed('kept', parts.join(', '));
}
