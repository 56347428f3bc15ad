import { dirname, isAbsolute } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import type { BucketAccess } from '../../platform/object-store/s3-client.js';
import { findBucketAccess, BUCKET_DEFAULTS, readBucketAccess } from '../files/bucket/project-bucket.js';
import { findByokKey, findProjectWebhookSecret, type MailSettings } from '../mail/project-mail.js';
import { readOwnFile, requireOwnEnv, setOwnEnv, setOwnFolder } from '../projects/own-code.js';
import type { Project } from '../projects/project.js';
import { listDifferent } from './plan-items.js';
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
  const what = listDifferent(BUCKET_LABELS, [present ?? {}, to ?? {}]);
  const isKept = to?.secretAccessKey === present?.secretAccessKey;
  return { to, what: isKept || !to || !present ? what : [...what, 'secret access key of the bucket: another one'] };
}

const BUCKET_LABELS = {
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

/** Where the files of own code are, and what of the environment they see. */
export interface OwnCodeChange {
  folder?: string;
  env?: string[];
  what: string[];
}

/** The difference between a project's folder and variables and the declared ones, or null. 400 for bad ones. */
export function planOwnCode(
  app: App,
  project: Project | null,
  { hooks = [], schedules = [], ownCode = {} }: Pick<ProjectDeclaration, 'hooks' | 'ownCode' | 'schedules'>,
): OwnCodeChange | null {
  const now = project?.ownCode ?? {};
  const change: OwnCodeChange = { what: [] };
  if (ownCode.env) requireOwnEnv(ownCode.env);
  const files = [...hooks.map(({ event, run }) => ({ name: event, run })), ...schedules].flatMap(({ name, run }) =>
    run === undefined ? [] : [readOwnFile(run, name).path],
  );
  // Where the service says where files are, only their names count.
  const isTold = app.config.hooksDir === null;
  const named = [...(ownCode.folder === undefined ? [] : [ownCode.folder]), ...files.filter(isAbsolute).map(dirname)];
  const folders = [...new Set(isTold ? named : [])];
  if (folders.length > 1) {
    throw invalid('INVALID_FILE', `All files of a project are in one folder, not in ${folders.join(' and ')}`);
  }
  const [folder] = folders;
  if (folder !== undefined && folder !== now.dir) {
    change.folder = folder;
    change.what.push(`own code: ${now.dir ?? 'no folder'} -> ${folder}`);
  }
  const env = ownCode.env ?? now.env ?? [];
  const [before, after] = [now.env ?? [], env].map((names) => [...names].sort().join(', ') || 'none');
  if (before !== after) {
    change.env = env;
    change.what.push(`variables of own code: ${before} -> ${after}`);
  }
  return change.what.length > 0 ? change : null;
}

/** The project as it is then. */
export async function applyOwnCode(app: App, project: Project, { folder, env }: OwnCodeChange): Promise<Project> {
  const moved = folder === undefined ? project : await setOwnFolder(app, project, folder);
  return env === undefined ? moved : setOwnEnv(app, moved, env);
}
