import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { holding } from '../../platform/database/holding.js';
import { failList } from '../documents/reply/query-errors.js';
import type { Project } from '../projects/project.js';
import { providerOf, visibilityOf, type FileRecord } from './file.js';
import { fileStore, findFile } from './file-store.js';
import { presentFile } from './present-file.js';

export const FILES_PAGE = 50;
export const MAX_FILES_PAGE = 200;

export interface FilesQuery {
  limit: number;
  /** Path of a file: answers those before it. */
  before?: string;
  /** Only names that hold this text, in either case. */
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
