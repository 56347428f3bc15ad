// What is stored, for tests that look at it past all rules or place what no caller could.

export { recountStorage, usageStore } from '../../src/features/files/usage-store.js';
export {
  documentStore,
  changeDocumentRecord,
  removeDocumentRecord,
} from '../../src/features/documents/store/document-store.js';
export { insertDocumentRecord } from '../../src/features/documents/write/insert-document.js';
export { sessionStore, SESSIONS } from '../../src/features/users/sessions/session.js';
export { fileStore, filesOf } from '../../src/features/files/file.js';
export { projectStore } from '../../src/features/projects/project-store.js';
export { collectionStore } from '../../src/features/collections/collection-store.js';
export { mailLogStore, type MailStatus } from '../../src/features/mail/mail-log.js';
export { deliveryStore } from '../../src/features/webhooks/deliveries/delivery.js';
export { webhookStore } from '../../src/features/webhooks/webhook-store.js';
export { operatorSessionStore, operatorStore, SIGNED_IN_OPERATORS } from '../../src/features/access/operator.js';
export { jobStore } from '../../src/platform/jobs/job.js';
export { beginRestore, endRestore } from '../../src/platform/database/restore-mark.js';
export { CHANGE_LOG, numberEntries, waitingEntry } from '../../src/features/changes/stored-log.js';
export { COUNTERS, counterId } from '../../src/features/users/counters.js';
export { noteUsed, ONE_TIME_TOKENS, oneTimeTokens } from '../../src/features/quota/one-time-token.js';
export type { Database, Store, Transaction, WriteTurn } from '../../src/platform/database/database.js';
export { identityStore } from '../../src/features/users/accounts/sign-in-methods.js';
export { findObjectId } from '../../src/platform/ids.js';
export { openChangeLog } from '../../src/features/changes/open-change-log.js';
export { hintOf } from '../../src/features/changes/change-log.js';
export { templateStore } from '../../src/features/mail/mail-template.js';
export {
  commitMailQuota,
  mailUsageStore,
  readMailQuota,
  reserveMailQuota,
} from '../../src/features/mail/sending/mail-quota.js';
export { payloadStore } from '../../src/features/webhooks/deliveries/payload.js';
