import { presentBucket } from '../files/bucket/project-bucket.js';
import { presentMailSettings } from '../mail/project-mail.js';
import { PLAN_NAMES, type Project } from '../projects/project.js';
import { presentProject } from '../projects/project-store.js';
import type { App } from '../../app.js';
import { arrayOf, object, oneOf, orNull, TEXT, WHOLE, type TypeOf } from '../../platform/schema/schema.js';
import { listBoundedLogs, presentLog } from '../changes/log-bound.js';
import { documentsName } from '../collections/collection.js';
import { listCollections } from '../collections/collection-store.js';
import { CHANGE_LOG_SIZE } from '../collections/schema/describe-collection.js';
import { visibleDocuments } from '../documents/store/document.js';
import { measureStorage, STORAGE_USAGE } from '../files/list-files.js';
import { readMailQuota } from '../mail/sending/mail-quota.js';
import { findLimit, LIMIT_NAMES, type LimitName } from '../plans/plan-limits.js';
import { measureDatabase } from '../quota/database-quota.js';
import { isOwnHandler, listWebhooks } from '../webhooks/add-webhook.js';

/** A project with its settings of every kind, secrets masked: what an operator may see and change. */
export function presentProjectDetails(project: Project) {
  const { providerApiKey, providerFromEmail, webhookSecret } = presentMailSettings(project);
  return {
    ...presentProject(project),
    providerApiKey,
    providerFromEmail,
    providerWebhookSecret: webhookSecret,
    storage: {
      publishableUploads: project.storage?.publishableUploads ?? false,
      bucket: presentBucket(project).bucket,
    },
  };
}

/** null = unlimited; bytes for storage and database. */
const LIMIT = orNull(WHOLE);

export const USAGE = object(
  {
    plan: oneOf(...PLAN_NAMES),
    limits: object(Object.fromEntries(LIMIT_NAMES.map((name) => [name, LIMIT])) as Record<LimitName, typeof LIMIT>),
    documents: WHOLE,
    collections: arrayOf(object({ name: TEXT, documents: WHOLE, trashed: WHOLE, bytes: WHOLE, log: CHANGE_LOG_SIZE })),
    /** Bytes that count in the quota: documents, logs of changes, and as `kept` sessions, codes, mails and the like. */
    database: object({ used: WHOLE, kept: WHOLE, limit: LIMIT }),
    storage: STORAGE_USAGE,
    /** Slots of the current month (UTC). */
    mail: object({ used: WHOLE, limit: LIMIT }),
    webhooks: WHOLE,
  },
  'Usage',
);
export type Usage = TypeOf<typeof USAGE>;
export type DatabaseUsage = Usage['database'];

/** Counts what a project holds, beside what its plan grants. */
export async function measureUsage(app: App, project: Project): Promise<Usage> {
  const collections: Usage['collections'] = [];
  const logs = await listBoundedLogs(app, project);
  for (const collection of await listCollections(app, project._id)) {
    const store = app.db.collection(documentsName(collection));
    collections.push({
      name: collection.name,
      documents: await store.countDocuments(visibleDocuments()),
      trashed: await store.countDocuments({ isDeleted: true }),
      bytes: (await app.db.measure(documentsName(collection))).bytes,
      log: presentLog(logs.get(collection._id.toHexString()) ?? null),
    });
  }
  const limit = findLimit(project, 'database');
  return {
    plan: project.plan,
    limits: Object.fromEntries(LIMIT_NAMES.map((name) => [name, findLimit(project, name)])) as Usage['limits'],
    documents: collections.reduce((sum, each) => sum + each.documents, 0),
    collections,
    database: { ...(await measureDatabase(app, project._id, limit)), limit },
    storage: await measureStorage(app, project),
    mail: await readMailQuota(app, project),
    // A handler in a file is a webhook that no plan limits.
    webhooks: (await listWebhooks(app, project)).filter(({ url }) => !isOwnHandler(url)).length,
  };
}
