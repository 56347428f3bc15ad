// The worker: what waits for it, what it sends, and jobs that a test begins itself.

export { listJobs } from '../../src/platform/jobs/manage-jobs.js';
export { sweepAttached } from '../../src/features/files/attached/attached.job.js';
export { removeAttachedJob, sweepAttachedJob } from '../../src/features/files/attached/attached.job.js';
export { sweepWebhooksJob } from '../../src/features/webhooks/events/sweep-webhooks.job.js';
export { removeOldDeliveriesJob } from '../../src/features/webhooks/deliveries/remove-old-deliveries.job.js';
export { findBackupAge } from '../../src/features/backups/backup-age.js';
export { drainJobs, createWorker, SCHEDULES } from '../../src/worker.js';
export { listOutbox, removeFromOutbox } from '../../src/platform/mail-provider/outbox.js';
export { type JobRecord, JOB_PRIORITIES } from '../../src/platform/jobs/job.js';
export { sweepUploads } from '../../src/features/files/uploads/sweep-uploads.job.js';
export { runBackupJob } from '../../src/features/backups/run-backup.job.js';
export { checkBackupJob } from '../../src/features/backups/check-backup.job.js';
export { removeAnonymousUsersJob } from '../../src/features/users/accounts/delete-user.js';
export { trimChangesJob } from '../../src/features/changes/trim-changes.job.js';
export { renewDocumentsJob } from '../../src/features/collections/renew-documents.js';
export { removeExpiredRecords } from '../../src/features/documents/write/idempotency.js';
export { holdTurns } from '../../src/features/mail/sending/provider-pace.js';
export { buildPayload } from '../../src/features/webhooks/deliveries/build-delivery.js';
export { removeProjectContents } from '../../src/features/management/delete-project.js';
export { openJobQueue } from '../../src/platform/jobs/job-queue.js';
export { REMOVE_ATTACHED } from '../../src/features/documents/store/attached-files.js';
export { sweepMail } from '../../src/features/mail/sending/sweep-mail.job.js';
