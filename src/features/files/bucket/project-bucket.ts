import { randomUUID } from 'node:crypto';
import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { BucketAccess } from '../../../platform/object-store/s3-client.js';
import type { S3Store } from '../../../platform/object-store/s3-store.js';
import type { EncryptedPlace } from '../../../platform/secrets/reencrypt.js';
import type { Project, ProjectBucket } from '../../projects/project.js';
import { PROJECTS, updateProjectRecord } from '../../projects/project-store.js';
import { invalid, missing, unavailable } from '../../../errors.js';
import { requirePublicTarget } from '../../../platform/network/require-public-target.js';
import { maskCredentials } from '../../../platform/secrets/mask-address.js';
import { checkAccess } from './check-bucket.js';

/**
 * The record of a project's own bucket; the secret is encrypted so that it opens for this project and field only. A
 * bucket that stays the same keeps its id, whatever else changes.
 */
function encryptBucketAccess(
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

const BUCKET_NAME = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const REGION = /^[a-z0-9-]{1,40}$/;
const CREDENTIAL = /^[\x21-\x7e]{1,256}$/;
const MAX_URL_CHARACTERS = 2048;

/** What is left out of a bucket's settings. */
export const BUCKET_DEFAULTS = { endpoint: null, region: 'us-east-1', publicUrl: null, forcePathStyle: false };

/**
 * Makes new files of the project go to its own bucket (decisions.md 6); older ones stay where they are. Unless `verify`
 * is false the bucket is first tried with put, head and delete: 400 with what it refuses, 503 when it cannot be
 * reached. 400 for values that cannot be right, and for addresses that are not public unless the settings allow those.
 */
export async function setBucket(app: App, project: Project, access: BucketAccess, verify: boolean): Promise<Project> {
  const checked = await readBucketAccess(app, access);
  const bucket = encryptBucketAccess(app, project, checked);
  if (verify) await requireUsable(await openBucket(app, project, bucket));
  return updateProjectRecord(app, project._id, { $set: { 'storage.bucket': bucket } });
}

/**
 * New files go to the service's own storage again. Files in the bucket keep their addresses; they can no longer be
 * deleted from here.
 */
export function clearBucket(app: App, project: Project): Promise<Project> {
  return updateProjectRecord(app, project._id, { $unset: { 'storage.bucket': '' } });
}

/**
 * Lets browser pages of `origins` upload to the project's bucket and read from it; replaces the bucket's CORS rules.
 * 404 NO_BUCKET.
 */
export async function applyBucketCors(app: App, project: Project, origins: readonly string[]): Promise<void> {
  for (const origin of origins) {
    if (origin !== '*' && !/^https?:\/\/[a-z0-9.*-]+(:\d{1,5})?$/i.test(origin)) {
      throw invalid('INVALID_ORIGIN', `"${origin}" is not an origin such as https://app.example.com, or *`);
    }
  }
  await (await requireBucket(app, project)).applyCors(origins);
}

/** The project's own bucket; 404 NO_BUCKET when it has none. */
export async function requireBucket(app: App, project: Project): Promise<S3Store> {
  const bucket = project.storage?.bucket;
  if (!bucket) throw missing('NO_BUCKET', `The project "${project.name}" has no bucket of its own`);
  return openBucket(app, project, bucket);
}

async function requireUsable(store: S3Store): Promise<void> {
  const failed = (await checkAccess(store)).find((check) => !check.ok);
  if (!failed) return;
  const message = `The bucket failed the test "${failed.name}": ${failed.detail}. ${failed.hint}`;
  throw failed.away ? unavailable('STORAGE_UNAVAILABLE', message) : invalid('BUCKET_UNUSABLE', message);
}

/** The settings in the form in which they are stored; refuses what setBucket refuses of them, without trying it. */
export async function readBucketAccess(app: App, access: BucketAccess): Promise<BucketAccess> {
  if (!BUCKET_NAME.test(access.bucket)) {
    throw invalid(
      'INVALID_BUCKET',
      `"${access.bucket}" is not a bucket’s name: 3 to 63 lower-case letters, digits, dots and hyphens`,
    );
  }
  if (!REGION.test(access.region)) throw invalid('INVALID_BUCKET', `"${access.region}" is not a region`);
  if (!CREDENTIAL.test(access.accessKeyId)) throw invalid('INVALID_BUCKET', 'The access key id is not valid');
  if (!CREDENTIAL.test(access.secretAccessKey)) throw invalid('INVALID_BUCKET', 'The secret access key is not valid');
  return {
    ...access,
    endpoint: access.endpoint === null ? null : await requireEndpoint(app, access.endpoint),
    publicUrl:
      access.publicUrl === null ? null : readUrl(access.publicUrl, ['https:', 'http:']).href.replace(/\/+$/, ''),
  };
}

/**
 * The service talks to this address by itself, so it is judged like a webhook's (decisions.md 8); every later
 * connection is judged again.
 */
async function requireEndpoint(app: App, text: string): Promise<string> {
  const url = readUrl(text, app.config.webhookAllowPrivate ? ['https:', 'http:'] : ['https:']);
  await requirePublicTarget(app.outbound, url, 'endpoint');
  return url.href.replace(/\/+$/, '');
}

function readUrl(text: string, protocols: readonly string[]): URL {
  const url = text.length <= MAX_URL_CHARACTERS && URL.canParse(text) ? new URL(text) : null;
  if (!url || !protocols.includes(url.protocol) || url.username || url.password || url.search || url.hash) {
    const schemes = protocols.map((protocol) => `${protocol}//`).join(' or ');
    const words = `must be an ${schemes} address without a password, query or fragment`;
    throw invalid('INVALID_URL', `"${maskCredentials(text)}" ${words}`);
  }
  return url;
}
