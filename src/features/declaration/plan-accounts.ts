import { isDeepStrictEqual } from 'node:util';
import type { App } from '../../app.js';
import type { BucketAccess } from '../../platform/object-store/s3-client.js';
import { findBucketAccess, BUCKET_DEFAULTS, readBucketAccess } from '../files/bucket/project-bucket.js';
import { findByokKey, findProjectWebhookSecret, type MailSettings } from '../mail/project-mail.js';
import type { Project } from '../projects/project.js';
import {
  type BucketDeclaration,
  type ProjectDeclaration,
  resolveSecret,
  type FindSecret,
} from './project-declaration.js';

/** `to`: null for the service's own storage. */
export interface BucketChange {
  to: BucketAccess | null;
  what: string[];
}

/** What differs of a project's account at the mail provider; for secrets only that they change. */
export function compareMailAccount(
  app: App,
  project: Project | null,
  declared: ProjectDeclaration['mail'],
  secretOf: FindSecret,
): { settings: MailSettings; what: string[] } {
  const settings: MailSettings = {};
  const what: string[] = [];
  const compare = (
    name: 'providerApiKey' | 'webhookSecret',
    label: string,
    reference: NonNullable<ProjectDeclaration['mail']>['providerKey'],
    present: string | null,
  ): void => {
    if (reference === undefined) return;
    const wanted = reference && resolveSecret(reference, secretOf);
    if (wanted === present) return;
    settings[name] = wanted;
    const now = wanted === null ? 'none' : present === null ? 'set' : 'another one';
    what.push(`${label}: ${present === null ? 'none' : 'set'} -> ${now}`);
  };
  const { providerKey, webhookSecret } = declared ?? {};
  compare('providerApiKey', 'key of the mail provider', providerKey, project && findByokKey(app, project));
  const known = project && findProjectWebhookSecret(app, project);
  compare('webhookSecret', 'secret of the mail provider’s events', webhookSecret, known);
  return { settings, what };
}

/** The difference between a project's bucket and the declared one; null without one. 400 for one that cannot be. */
export async function planBucket(
  app: App,
  project: Project | null,
  declared: BucketDeclaration | null | undefined,
  secretOf: FindSecret,
): Promise<BucketChange | null> {
  if (declared === undefined) return null;
  const present = project && findBucketAccess(app, project);
  const to = declared && (await readBucketAccess(app, settle(present, declared, secretOf)));
  if (isDeepStrictEqual(to, present)) return null;
  const what = (['bucket', 'endpoint', 'region', 'accessKeyId', 'publicUrl', 'forcePathStyle'] as const)
    .filter((name) => to?.[name] !== present?.[name])
    .map((name) => `${LABELS[name]}: ${present?.[name] ?? 'none'} -> ${to?.[name] ?? 'none'}`);
  const isKept = to?.secretAccessKey === present?.secretAccessKey;
  return { to, what: isKept || !to || !present ? what : [...what, 'secret access key of the bucket: another one'] };
}

const LABELS = {
  bucket: 'bucket',
  endpoint: 'endpoint of the bucket',
  region: 'region of the bucket',
  accessKeyId: 'access key id of the bucket',
  publicUrl: 'public address of the bucket',
  forcePathStyle: 'path style of the bucket',
};

function settle(present: BucketAccess | null, declared: BucketDeclaration, secretOf: FindSecret): BucketAccess {
  return {
    ...(present ?? BUCKET_DEFAULTS),
    ...declared,
    secretAccessKey: resolveSecret(declared.secretAccessKey, secretOf),
  };
}
