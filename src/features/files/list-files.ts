import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { holding } from '../../platform/database/database.js';
import { failList } from '../documents/reply/query-errors.js';
import type { Project } from '../projects/project.js';
import {
  providerOf,
  visibilityOf,
  objectOf,
  openPlace,
  fileStore,
  findFile,
  filesOf,
  type FileRecord,
  type Provider,
  type Visibility,
} from './file.js';
import { object, oneOf, orNull, WHOLE, type TypeOf } from '../../platform/schema/schema.js';
import { findLimit } from '../plans/plan-limits.js';
import { usageStore } from './usage-store.js';

interface PresentedFile {
  path: string;
  provider: Provider;
  url: string | null;
  warning?: string;
  /** Of files that have no public address on purpose. */
  visibility?: Exclude<Visibility, 'public'>;
}

const NO_URL = 'The bucket has no public URL configured, so the file cannot be read by an address.';

/** A file as replies show it (rest-api.md 2.7); with a warning when it has no public address. */
export async function presentFile(
  app: App,
  project: Project,
  file: FileRecord,
  serviceUrl: string,
): Promise<PresentedFile> {
  const visibility = visibilityOf(file);
  if (visibility !== 'public') return { path: file.path, provider: providerOf(file.place), url: null, visibility };
  const store = await openPlace(app, project, file);
  const url = store?.publicUrl(store.kind === 's3' ? objectOf(file) : file.path, serviceUrl) ?? null;
  return { path: file.path, provider: providerOf(file.place), url, ...(url === null && { warning: NO_URL }) };
}

export const FILES_PAGE = 50;
export const MAX_FILES_PAGE = 200;

interface FilesQuery {
  limit: number;
  /** Path of a file: answers those before it. */
  before?: string;
  /** Only names that contain this text, case-insensitive. */
  name?: string;
}

/**
 * The confirmed files of a project, the newest first. 400 for a page that does not begin at one of them, and
 * QUERY_TIMEOUT.
 */
export async function listProjectFiles(
  app: App,
  project: Project,
  { limit, before, name }: FilesQuery,
): Promise<{ files: FileRecord[]; next: string | null }> {
  const from = before === undefined ? null : await findFile(app, project._id, before);
  if (before !== undefined && !from) {
    throw invalid('INVALID_QUERY', 'before must be the path of a file of this project');
  }
  const files = await fileStore(app)
    .find(
      {
        projectId: project._id,
        state: 'confirmed',
        ...(from && {
          $or: [{ createdAt: { $lt: from.createdAt } }, { createdAt: from.createdAt, _id: { $lt: from._id } }],
        }),
        ...(name !== undefined && { name: holding(name) }),
      },
      { maxTimeMS: app.config.queryTimeoutMs },
    )
    .sort({ createdAt: -1, _id: -1 })
    .limit(limit + 1)
    .toArray()
    .catch(failList);
  const page = files.slice(0, limit);
  return { files: page, next: files.length > limit ? page.at(-1)!.path : null };
}

/** A file as operators see it. */
export async function presentListedFile(app: App, project: Project, file: FileRecord, serviceUrl: string) {
  const { url } = await presentFile(app, project, file, serviceUrl);
  return {
    path: file.path,
    name: file.name,
    contentType: file.contentType,
    size: file.size,
    provider: providerOf(file.place),
    url,
    visibility: visibilityOf(file),
    attachedTo: file.attachedTo?.id.toHexString() ?? null,
    uploadedBy: file.uploadedBy ?? null,
    createdAt: file.createdAt.toISOString(),
  };
}

export const STORAGE_USAGE = object(
  {
    files: WHOLE,
    /** Bytes charged to the quota; files in the project's own bucket are not. */
    bytes: WHOLE,
    limit: { ...orNull(WHOLE), description: 'null means unlimited.' },
    provider: oneOf('internal', 'external'),
  },
  'StorageUsage',
);
export type StorageUsage = TypeOf<typeof STORAGE_USAGE>;

/** A project's use of its storage, beside its limit. */
export async function measureStorage(app: App, project: Project): Promise<StorageUsage> {
  const usage = await usageStore(app).findOne({ _id: project._id });
  return {
    files: await fileStore(app).countDocuments({ ...filesOf(project._id), state: 'confirmed' }),
    bytes: usage?.bytes ?? 0,
    limit: findLimit(project, 'storage'),
    provider: project.storage?.bucket ? 'external' : 'internal',
  };
}
