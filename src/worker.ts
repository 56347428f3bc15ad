import type { App } from './app.js';
import { measureBackups } from './features/backups/backup-age.js';
import { checkBackupJob } from './features/backups/check-backup.job.js';
import { backupSchedules, runBackupJob } from './features/backups/run-backup.job.js';
import { trimChangesJob } from './features/changes/trim-changes.job.js';
import { finishDropJob } from './features/collections/drop-collection.js';
import { renewDocumentsJob } from './features/collections/renew-documents.js';
import { forgetAnswersJob } from './features/documents/write/idempotency.js';
import { purgeTrashJob, removeExpiredDocumentsJob } from './features/documents/bulk/remove-old-documents.job.js';
import { cascadeReferencesJob } from './features/documents/references/cascade-references.js';
import { removeAttachedJob, sweepAttachedJob } from './features/files/attached/attached.job.js';
import { sweepUploadsJob } from './features/files/uploads/sweep-uploads.job.js';
import { removeAnonymousUsersJob, removeWaysInJob } from './features/users/accounts/delete-user.js';
import { mailCodeJob } from './features/users/codes/send-code.js';
import { resetFactorsJob } from './features/users/factors/reset-factors.js';
import { removeExpiredAccessJob } from './features/users/remove-records.job.js';
import { removeOldCallsJob } from './features/hooks/call-log.js';
import { runScheduleJob, watchSchedules } from './features/hooks/run-schedules.js';
import { deliverMail, deliverSystemMail } from './features/mail/sending/deliver-mail.job.js';
import { forgetMailsJob } from './features/mail/forget-mails.js';
import { sweepMail } from './features/mail/sending/sweep-mail.job.js';
import { finishDeletionJob } from './features/management/delete-project.js';
import { deliverWebhook } from './features/webhooks/deliveries/deliver-webhook.job.js';
import { removeOldDeliveriesJob } from './features/webhooks/deliveries/remove-old-deliveries.job.js';
import { sweepWebhooksJob } from './features/webhooks/events/sweep-webhooks.job.js';
import type { AnyJobDefinition } from './platform/jobs/job.js';
import { removeExpiredJobsJob } from './platform/jobs/manage-jobs.js';
import { openRunner } from './platform/jobs/runner.js';
import { startSchedules, type Schedule } from './platform/jobs/schedules.js';

export interface Worker {
  /**
   * Takes no new work, waits for what is under way for at most `graceMs` (default: the configured grace), hands back
   * the rest. Safe to call twice.
   */
  stop(graceMs?: number): Promise<void>;
}

export interface WorkerOptions {
  /** The number of jobs that run at once; kinds with a concurrency of their own come on top. */
  concurrency?: number;
}

const DEFAULT_CONCURRENCY = 10;

/** The kinds of background work, feature by feature. */
const JOBS: readonly AnyJobDefinition<App>[] = [
  removeExpiredJobsJob,
  purgeTrashJob,
  removeExpiredDocumentsJob,
  cascadeReferencesJob,
  forgetAnswersJob,
  mailCodeJob,
  removeWaysInJob,
  resetFactorsJob,
  removeExpiredAccessJob,
  removeAnonymousUsersJob,
  deliverSystemMail,
  deliverMail,
  sweepMail,
  forgetMailsJob,
  deliverWebhook,
  runScheduleJob,
  removeOldCallsJob,
  sweepWebhooksJob,
  trimChangesJob,
  removeOldDeliveriesJob,
  sweepUploadsJob,
  removeAttachedJob,
  sweepAttachedJob,
  finishDropJob,
  renewDocumentsJob,
  finishDeletionJob,
  runBackupJob,
  checkBackupJob,
];

/**
 * Jobs that the clock enqueues (UTC, seconds first when there are six fields). Any number of workers makes one run of
 * each tick.
 */
export const SCHEDULES: readonly Schedule<App>[] = [
  { job: removeExpiredJobsJob, cron: '17 * * * *' },
  { job: purgeTrashJob, cron: '41 * * * *' },
  { job: removeExpiredDocumentsJob, cron: '11 * * * * *' },
  { job: forgetAnswersJob, cron: '53 * * * *' },
  { job: removeExpiredAccessJob, cron: '29 * * * *' },
  { job: removeAnonymousUsersJob, cron: '43 * * * *' },
  { job: sweepMail, cron: '*/5 * * * *' },
  { job: forgetMailsJob, cron: '37 * * * * *' },
  { job: sweepWebhooksJob, cron: '*/10 * * * * *' },
  { job: trimChangesJob, cron: '*/5 * * * *' },
  { job: removeOldDeliveriesJob, cron: '23 * * * * *' },
  { job: removeOldCallsJob, cron: '19 * * * *' },
  { job: sweepUploadsJob, cron: '* * * * *' },
  { job: sweepAttachedJob, cron: '47 * * * *' },
];

/** Runs background work until stopped: the same inside `bsvc serve` and as `bsvc worker`. */
export function createWorker(app: App, { concurrency = DEFAULT_CONCURRENCY }: WorkerOptions = {}): Worker {
  measureBackups(app);
  const runner = openRunner(app, JOBS, { concurrency });
  runner.start();
  const stopSchedules = startSchedules(app, [...SCHEDULES, ...backupSchedules(app.config)]);
  const stopWatching = watchSchedules(app);
  return {
    async stop(graceMs = app.config.shutdownGraceMs) {
      await Promise.all([stopSchedules(), stopWatching()]);
      await runner.stop(graceMs);
    },
  };
}

/**
 * Runs everything that is due now and resolves when nothing is left; how many runs there were. For tests that move the
 * clock themselves.
 */
export function drainJobs(app: App): Promise<number> {
  return openRunner(app, JOBS, { concurrency: DEFAULT_CONCURRENCY }).drain();
}
