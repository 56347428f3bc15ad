import { indexAccountChallenges } from './025-index-account-challenges.js';
import { indexInvites } from './026-index-invites.js';
import { countWaitingMails } from './027-count-waiting-mails.js';
import { noteFieldsOfSets } from './028-note-fields-of-sets.js';
import type { Migration } from './migration.js';
import { createSystemCollections } from './001-create-system-collections.js';
import { createJobIndexes } from './002-create-job-indexes.js';
import { createIdempotencyIndex } from './003-create-idempotency-index.js';
import { createMailCollections } from './004-create-mail-collections.js';
import { createWebhookIndexes } from './005-create-webhook-indexes.js';
import { createUserCollections } from './006-create-user-collections.js';
import { createAuditIndex } from './010-create-audit-index.js';
import { createFileIndexes } from './011-create-file-indexes.js';
import { createOperatorIndexes } from './012-create-operator-indexes.js';
import { createRateCounterIndex } from './013-create-rate-counter-index.js';
import { createOwnerIndexes } from './014-create-owner-indexes.js';
import { sortMailLogsBySentAt } from './015-sort-mail-logs-by-sent-at.js';
import { createInsertSeriesIndex } from './016-create-insert-series-index.js';
import { letMailTakeTurns } from './017-let-mail-take-turns.js';
import { createTicketIndexes } from './018-create-ticket-indexes.js';
import { indexFileLists } from './019-list-files.js';
import { slimWebhookDeliveries } from './020-slim-webhook-deliveries.js';
import { createMailCountIndexes } from './021-create-mail-count-indexes.js';
import { indexTrashAndSorts } from './022-index-trash-and-sorts.js';
import { keepIdsOfRepeatedRequests } from './023-keep-ids-of-repeated-requests.js';
import { dropRateCounters } from './024-drop-rate-counters.js';

/** Numbered one-way changes of stored data, in order. A released one is never edited. */
export const MIGRATIONS: readonly Migration[] = [
  createSystemCollections,
  createJobIndexes,
  createIdempotencyIndex,
  createMailCollections,
  createWebhookIndexes,
  createUserCollections,
  createAuditIndex,
  createFileIndexes,
  createOperatorIndexes,
  createRateCounterIndex,
  createOwnerIndexes,
  sortMailLogsBySentAt,
  createInsertSeriesIndex,
  letMailTakeTurns,
  createTicketIndexes,
  indexFileLists,
  slimWebhookDeliveries,
  createMailCountIndexes,
  indexTrashAndSorts,
  keepIdsOfRepeatedRequests,
  dropRateCounters,
  indexAccountChallenges,
  indexInvites,
  countWaitingMails,
  noteFieldsOfSets,
];
