import { defaulted, optional } from './setting.js';
import { address, addressOfOneHost, among, asIs, wholeWithin } from './setting-readers.js';

/** Where data is stored. */
export const STORE_SETTINGS = {
  mongodbUri: optional(
    'MONGODB_URI',
    address('mongodb', 'mongodb+srv'),
    'MongoDB to use; none means the embedded engine',
    { secret: true },
  ),
  mongodbName: defaulted('BSVC_MONGODB_DB', asIs, 'bsvc', 'name of the database in that MongoDB', {
    defaultText: 'the path of MONGODB_URI, else bsvc',
  }),
  dataDir: defaulted('BSVC_DATA_DIR', asIs, './bsvc-data', 'engine files, local uploads, generated secrets'),
  durability: defaulted(
    'BSVC_DURABILITY',
    among('full', 'relaxed'),
    'full',
    'embedded engine: `full` survives power loss, `relaxed` may lose the last second',
  ),
  readerThreads: optional(
    'BSVC_READER_THREADS',
    (value) => (value === 'off' ? 0 : wholeWithin(0, 64)(value)),
    'embedded engine: threads of a serving process for reads that take long; `off` = none',
    { defaultText: 'processors − 1, at least 1, shared by BSVC_PROCESSES' },
  ),
  engineListen: optional(
    'BSVC_ENGINE_LISTEN',
    asIs,
    'where the embedded engine answers MongoDB’s wire protocol: `127.0.0.1:27027` or `unix:/path/name.sock`',
    { defaultText: 'off' },
  ),
  redisUrl: optional(
    'REDIS_URL',
    addressOfOneHost('redis', 'rediss'),
    'Redis for limits, wake-ups and cache invalidation across machines',
    { secret: true },
  ),
};
