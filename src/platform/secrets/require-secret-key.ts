import { ConfigError, type Config } from '../../config/config.js';

/** Refuses a MongoDB without BSVC_SECRET_KEY: only an embedded store has a place to keep a key of its own. */
export function requireSecretKey({ mongodbUri, secretKey }: Config): void {
  if (!mongodbUri || secretKey) return;
  throw new ConfigError(['BSVC_SECRET_KEY is required with MONGODB_URI: set it to a long random text and keep a copy']);
}
