import type { App } from '../../app.js';
import { unavailable } from '../../errors.js';
import type { LocalStore } from '../../platform/object-store/local-store.js';
import type { S3Store } from '../../platform/object-store/s3-store.js';
import type { Project } from '../projects/project.js';
import { openBucket } from './bucket/project-bucket.js';
import type { FilePlace, FileRecord } from './file.js';

/** The place for a new file of the project: its own bucket, else the service's bucket, else the data directory. */
export function choosePlace(app: Pick<App, 'files'>, project: Project): FilePlace {
  if (project.storage?.bucket) return 'external';
  return app.files.hasBucket ? 's3' : 'local';
}

/**
 * The store that holds a file; null when it is in a bucket that the project no longer names. 503 when the service's own
 * bucket is no longer configured.
 */
export async function openPlace(
  app: Pick<App, 'files' | 'secrets'>,
  project: Pick<Project, '_id' | 'storage'> | null,
  file: Pick<FileRecord, 'place' | 'bucketId'>,
): Promise<LocalStore | S3Store | null> {
  if (file.place === 'local') return app.files.local;
  if (file.place === 'external') {
    const bucket = project?.storage?.bucket;
    return project && bucket && bucket.id === file.bucketId ? openBucket(app, project, bucket) : null;
  }
  const store = await app.files.openPlatformBucket();
  if (!store) throw unavailable('STORAGE_UNAVAILABLE', 'The bucket of this file is no longer configured');
  return store;
}
