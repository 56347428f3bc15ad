// The worker: what waits for it, what it sends, and jobs that a test begins itself.

export { listJobs } from '../../src/platform/jobs/manage-jobs.js';
export { sweepAttached } from '../../src/features/files/attached/attached.job.js';
export { removeAttachedJob, sweepAttachedJob } from '../../src/features/files/attached/attached.job.js';
export { sweepWebhooksJob } from '../../src/features/webhooks/outbox/sweep-webhooks.job.js';
export { removeOldDeliveriesJob } from '../../src/features/webhooks/deliveries/remove-old-deliveries.job.js';
export { findBackupAge } from '../../src/features/backups/backup-age.js';
export { drainJobs, createWorker, SCHEDULES } from '../../src/worker.js';
export { listOutbox } from '../../src/platform/mail-provider/outbox.js';
export type { JobRecord } from '../../src/platform/jobs/job.js';
export { sweepUploads } from '../../src/features/files/uploads/sweep-uploads.job.js';
export { runBackupJob } from '../../src/features/backups/run-backup.job.js';
export { checkBackupJob } from '../../src/features/backups/check-backup.job.js';
export { removeAnonymousUsersJob } from '../../src/features/users/accounts/delete-user.js';
export { trimChangesJob } from '../../src/features/changes/trim-changes.job.js';
