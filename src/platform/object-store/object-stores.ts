import { join } from 'node:path';
import { LRUCache } from 'lru-cache';
import type { Config } from '../../config/config.js';
import type { Clock } from '../time/clock.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { openLocalStore, type LocalStore } from './local-store.js';
import type { BucketAccess, OwnBucketAccess } from './s3-client.js';
import type { S3Store } from './s3-store.js';
import { openSpool } from './spool.js';

/** The places where this process keeps files. */
export interface ObjectStores {
  /** Files below the data directory. */
  readonly local: LocalStore;
  /** True if the settings name a bucket, to which new files go instead. */
  readonly hasBucket: boolean;
  /** The bucket that the settings name, or null. */
  openPlatformBucket(): Promise<S3Store | null>;
  /**
   * A bucket that a project names; kept open under `id` as long as it is in use. Refuses private addresses unless the
   * settings allow them.
   */
  openProjectBucket(id: string, access: () => BucketAccess): Promise<S3Store>;
  /** Removes what killed uploads left half-written on this machine. */
  sweepSpool(): Promise<number>;
  close(): void;
}

const MAX_OPEN_BUCKETS = 100;
const ABANDONED_MS = 2 * 60 * 60 * 1000;

/** Opens nothing yet: the AWS SDK is imported when a bucket is first used. */
export function openObjectStores(config: Config, secrets: SecretBox, clock: Clock): ObjectStores {
  const spool = openSpool(join(config.dataDir, 'incoming'));
  const platformAccess = readPlatformBucket(config);
  const open = async (access: OwnBucketAccess, allowPrivate: boolean): Promise<S3Store> => {
    const { openS3Store } = await import('./s3-store.js');
    return openS3Store(access, { allowPrivate, spool });
  };
  const buckets = new LRUCache<string, Promise<S3Store>>({
    max: MAX_OPEN_BUCKETS,
    dispose: (bucket) => void bucket.then((store) => store.close()),
  });
  let platform: Promise<S3Store> | null = null;

  return {
    local: openLocalStore({ dir: join(config.dataDir, 'files'), spool, secrets, clock }),
    hasBucket: platformAccess !== null,
    openPlatformBucket: async () => (platformAccess ? (platform ??= open(platformAccess, true)) : null),
    openProjectBucket(id, access) {
      const kept = buckets.get(id);
      if (kept) return kept;
      const opened = open(access(), config.webhookAllowPrivate);
      buckets.set(id, opened);
      return opened;
    },
    sweepSpool: () => spool.sweep(ABANDONED_MS, Date.now()),
    close() {
      buckets.clear();
      void platform?.then((store) => store.close());
    },
  };
}

function readPlatformBucket({ s3 }: Config): OwnBucketAccess | null {
  return s3?.bucket ? { ...s3, bucket: s3.bucket } : null;
}
