import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import type { BucketAccess } from '../../platform/object-store/s3-store.js';
import type { Project, ProjectBucket } from '../projects/project.js';

/** The record of a project's own bucket; the secret is sealed so that it opens for this project and bucket only. */
export function sealBucketAccess(
  app: Pick<App, 'secrets'>,
  projectId: ObjectId,
  { secretAccessKey, ...access }: BucketAccess,
  id: string,
  nowMs: number,
): ProjectBucket {
  const sealedSecretAccessKey = app.secrets.seal(secretAccessKey, sealContext(projectId));
  return { id, ...access, sealedSecretAccessKey, setAt: new Date(nowMs) };
}

export function openBucketAccess(
  app: Pick<App, 'secrets'>,
  project: Pick<Project, '_id'>,
  bucket: ProjectBucket,
): BucketAccess {
  const { endpoint, region, bucket: name, accessKeyId, sealedSecretAccessKey, publicUrl, forcePathStyle } = bucket;
  const secretAccessKey = app.secrets.open(sealedSecretAccessKey, sealContext(project._id));
  return { endpoint, region, bucket: name, accessKeyId, secretAccessKey, publicUrl, forcePathStyle };
}

const sealContext = (projectId: ObjectId): string => `project:${projectId.toHexString()}:bucket-secret`;
