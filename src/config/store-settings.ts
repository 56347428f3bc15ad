import { defaulted, optional } from './setting.js';
import { address, addressOfOneHost, among, asIs } from './setting-readers.js';

/** Where data is stored. */
export const STORE_SETTINGS = {
  mongodbUri: optional(
    'MONGODB_URI',
    address('mongodb', 'mongodb+srv'),
    'MongoDB connection string; its path is the database name (default: bsvc). Without it, the embedded database is used',
    { secret: true },
  ),
  dataDir: defaulted(
    'BSVC_DATA_DIR',
    asIs,
    './bsvc-data',
    'directory for the embedded database, uploads and generated secrets',
  ),
  durability: defaulted(
    'BSVC_DURABILITY',
    among('full', 'relaxed'),
    'full',
    'embedded database: `full` survives power loss, `relaxed` may lose the last second',
  ),
  engineListen: optional(
    'BSVC_ENGINE_LISTEN',
    asIs,
    'serve MongoDB’s wire protocol of the embedded database: `127.0.0.1:27027` or `unix:/path/name.sock`',
    { defaultText: 'off' },
  ),
  redisUrl: optional(
    'REDIS_URL',
    addressOfOneHost('redis', 'rediss'),
    'Redis for rate limits, wake-ups and cache invalidation across machines',
    { secret: true },
  ),
};
