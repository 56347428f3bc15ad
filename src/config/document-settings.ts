import { defaulted, optional } from './setting.js';
import { lifetime, parseBytes, wait, wholeWithin } from './setting-readers.js';

/** Reads of documents, changes, the trash. */
export const DOCUMENT_SETTINGS = {
  queryTimeoutMs: defaulted('BSVC_QUERY_TIMEOUT', wait, 10_000, 'how long one read of documents may take', {
    defaultText: '10s',
  }),
  aggregateLimit: defaulted(
    'BSVC_AGGREGATE_LIMIT',
    wholeWithin(1, 100_000),
    1000,
    'most documents that an aggregation may answer',
  ),
  documentMaxBytes: defaulted(
    'BSVC_DOCUMENT_MAX',
    parseBytes,
    2 * 1024 ** 2,
    'bytes that changes may let a document grow to; what is inserted or imported is bounded by its request',
    { defaultText: '2mb' },
  ),
  changesKeepMs: defaulted('BSVC_CHANGES_KEEP', lifetime, 30 * 86_400_000, 'time changes are kept', {
    defaultText: '30d',
  }),
  changesMaxBytes: optional(
    'BSVC_CHANGES_MAX',
    parseBytes,
    'bytes that the log of changes of a collection may have: beyond them the oldest go, however young',
    { defaultText: '64mb, or the size of the documents of the collection where that is more' },
  ),
  streams: defaulted('BSVC_STREAMS', wholeWithin(1, 1_000_000), 10_000, 'clients of a process that wait for changes'),
  streamsPerAddress: defaulted(
    'BSVC_STREAMS_PER_ADDRESS',
    wholeWithin(1, 1_000_000),
    100,
    'streams of changes that one client address may have open in a process',
  ),
  ruleSet: defaulted(
    'BSVC_RULE_SET',
    wholeWithin(1, 100_000),
    10_000,
    'values that a set of a rule may have for one user, such as the boards they are a member of',
  ),
  trashDays: defaulted('BSVC_TRASH_DAYS', wholeWithin(0, 36_500), 30, 'days a trashed document is kept'),
};
