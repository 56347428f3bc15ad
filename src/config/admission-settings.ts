import { defaulted } from './setting.js';
import { memoryBudget, wholeWithin } from './setting-readers.js';

/** What requests may hold of a process at once, and how much of it one project and one address. */
export const ADMISSION_SETTINGS = {
  maxInFlight: defaulted(
    'BSVC_MAX_IN_FLIGHT',
    wholeWithin(1, 100_000),
    500,
    'requests that a process works on at once, half of them at most of one project; as many again wait for a second, others are told to come back',
  ),
  bodyBudgetBytes: defaulted(
    'BSVC_BODY_BUDGET',
    memoryBudget,
    64 * 1024 ** 2,
    'memory that a process gives to bodies of requests, half of it at most to one project; beyond it they wait unread, then are told to come back',
    { defaultText: '64mb' },
  ),
  bodyValues: defaulted(
    'BSVC_BODY_VALUES',
    wholeWithin(200, 1_000_000),
    50_000,
    'values that the JSON body of a bulk write, a pipeline or a declaration may hold, lists and objects included',
  ),
  documentValues: defaulted(
    'BSVC_DOCUMENT_VALUES',
    wholeWithin(200, 1_000_000),
    20_000,
    'values that a document, or any other JSON body, may hold',
  ),
  liveConditions: defaulted(
    'BSVC_LIVE_CONDITIONS',
    wholeWithin(1_000, 100_000_000),
    200_000,
    'conditions and listed values that the filters of open streams may hold in a process, about half a kilobyte each; half at most of one project, a tenth of one address',
  ),
  replyBudgetBytes: defaulted(
    'BSVC_REPLY_BUDGET',
    memoryBudget,
    128 * 1024 ** 2,
    'memory that a process gives to large replies under way, half of it at most to one project and an eighth to one address without a secret key; beyond it requests wait their turn, then are told to come back',
    { defaultText: '128mb' },
  ),
};
