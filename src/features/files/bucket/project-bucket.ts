import { randomUUID } from 'node:crypto';
import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { BucketAccess } from '../../../platform/object-store/s3-client.js';
import type { S3Store } from '../../../platform/object-store/s3-store.js';
import type { EncryptedPlace } from '../../../platform/secrets/reencrypt.js';
import type { Project, ProjectBucket } from '../../projects/project.js';
import { PROJECTS } from '../../projects/project-store.js';

/**
 * The record of a project's own bucket; the secret is encrypted so that it opens for this project and field only. A
 * bucket that stays the same keeps its id, whatever else changes.
 */
export function encryptBucketAccess(
  app: Pick<App, 'secrets' | 'clock'>,
  project: Pick<Project, '_id' | 'storage'>,
  { secretAccessKey, ...access }: BucketAccess,
): ProjectBucket {
  const known = project.storage?.bucket;
  const isSame = known && known.bucket === access.bucket && known.endpoint === access.endpoint;
  return {
    id: isSame ? known.id : randomUUID(),
    ...access,
    encryptedSecretAccessKey: app.secrets.encrypt(secretAccessKey, encryptionContext(project._id)),
    setAt: new Date(app.clock.now()),
  };
}

/** The bucket, opened with the project's credentials; kept open while it is in use. */
export function openBucket(
  app: Pick<App, 'files' | 'secrets'>,
  project: Pick<Project, '_id'>,
  bucket: ProjectBucket,
): Promise<S3Store> {
  const version = `${bucket.id} ${bucket.setAt.getTime()}`;
  return app.files.openProjectBucket(version, () => openAccess(app, project, bucket));
}

/** The address and the opened credentials of a project's own bucket; null without one. */
export function findBucketAccess(
  app: Pick<App, 'secrets'>,
  project: Pick<Project, '_id' | 'storage'>,
): BucketAccess | null {
  return project.storage?.bucket ? openAccess(app, project, project.storage.bucket) : null;
}

function openAccess(
  app: Pick<App, 'secrets'>,
  project: Pick<Project, '_id'>,
  { endpoint, region, bucket, accessKeyId, encryptedSecretAccessKey, publicUrl, forcePathStyle }: ProjectBucket,
): BucketAccess {
  const secretAccessKey = app.secrets.decrypt(encryptedSecretAccessKey, encryptionContext(project._id));
  return { endpoint, region, bucket, accessKeyId, secretAccessKey, publicUrl, forcePathStyle };
}

/** A project's bucket without its secrets. */
export function presentBucket({ storage }: Pick<Project, 'storage'>) {
  const bucket = storage?.bucket;
  if (!bucket) return { bucket: null };
  const { endpoint, region, bucket: name, accessKeyId, publicUrl, forcePathStyle, setAt } = bucket;
  return {
    bucket: name,
    endpoint,
    region,
    accessKeyId,
    secretAccessKey: '********' as const,
    publicUrl,
    forcePathStyle,
    setAt: setAt.toISOString(),
  };
}

export const ENCRYPTED_BUCKET_SECRETS: EncryptedPlace = {
  collection: PROJECTS,
  fields(record) {
    const { _id, storage } = record as Project;
    const encrypted = storage?.bucket?.encryptedSecretAccessKey;
    return encrypted
      ? [{ path: 'storage.bucket.encryptedSecretAccessKey', encrypted, context: encryptionContext(_id) }]
      : [];
  },
};

const encryptionContext = (projectId: ObjectId): string => `project:${projectId.toHexString()}:bucket-secret`;
