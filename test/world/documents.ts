// Documents as the service writes and reads them for a caller.

export { listDocuments, explainList, encodeList } from '../../src/features/documents/read/list-documents.js';
export { readEncoded } from '../../src/features/documents/reply/encoded-reply.js';
export { aggregateDocuments, explainPipeline } from '../../src/features/documents/read/aggregate-documents.js';
export { explainAccess } from '../../src/features/documents/read/explain-access.js';
export { EXPRESSION_OPERATORS } from '../../src/features/documents/pipeline/expression-operators.js';
export { FILTER_OPERATORS } from '../../src/features/documents/query/filter-operators.js';
export { RESERVED_KEYS } from '../../src/features/documents/query/parse-list-query.js';
export { FEED_PARAMETERS } from '../../src/features/feed/feed-query.js';
export { readFeed } from '../../src/features/feed/read-feed.js';
export { insertDocuments } from '../../src/features/documents/bulk/insert-documents.js';
export { exportDocuments } from '../../src/features/documents/read/export-documents.js';
export { getDocument } from '../../src/features/documents/read/get-document.js';
export { insertDocument } from '../../src/features/documents/write/insert-document.js';
export { updateDocument } from '../../src/features/documents/write/update-document.js';
export { trashDocument, deleteDocument } from '../../src/features/documents/write/change-state.js';
export { recoverDocument } from '../../src/features/documents/write/change-state.js';
export { requireWriteTarget, type WriteTarget } from '../../src/features/documents/write/write-target.js';
export { type StoredDocument, visibleDocuments } from '../../src/features/documents/store/document.js';
export { userCaller, operatorCaller } from '../../src/features/access/operator-access.js';
export type { Caller } from '../../src/features/access/caller.js';
export { importDocuments } from '../../src/features/documents/bulk/import-documents.js';
export { purgeTrash, removeExpiredDocuments } from '../../src/features/documents/bulk/remove-old-documents.job.js';
export { readNewDocument } from '../../src/features/documents/write/new-document.js';
export { updateMatching } from '../../src/features/documents/bulk/write-matching.js';
export { parseBulkQuery } from '../../src/features/documents/query/parse-bulk-query.js';
