import type { IndexKeys } from './index-keys.js';

/** A document that was found to be storable. */
export interface NewDocument {
  key: Buffer;
  bytes: Buffer;
  /** The BSON with its checksum. */
  value: Buffer;
  idBytes: Buffer;
  isLong: boolean;
  entries: IndexKeys[];
  counted: unknown;
}
