import { defaulted, optional } from './setting.js';
import { address, addressOfOneHost, among, asIs } from './setting-readers.js';

/** Where data is stored. */
export const STORE_SETTINGS = {
  mongodbUri: optional(
    'MONGODB_URI',
    address('mongodb', 'mongodb+srv'),
    'MongoDB to use, its path names the database (default: bsvc); none means the embedded engine',
    { secret: true },
  ),
  dataDir: defaulted('BSVC_DATA_DIR', asIs, './bsvc-data', 'engine files, local uploads, generated secrets'),
  durability: defaulted(
    'BSVC_DURABILITY',
    among('full', 'relaxed'),
    'full',
    'embedded engine: `full` survives power loss, `relaxed` may lose the last second',
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
