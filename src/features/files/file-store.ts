import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { missing, type AppError } from '../../errors.js';
import { storeOf } from '../../platform/database/store-of.js';
import { isObjectKey } from '../../platform/object-store/object-store.js';
import { FILES } from '../documents/store/attached-files.js';
import type { FileRecord } from './file.js';
import { cacheRegion } from '../../platform/cache.js';

/** Local files by the path that they are served at. */
export const SERVED_FILES = cacheRegion<FileRecord>('files');

export const fileStore = storeOf<FileRecord>(FILES);

/**
 * All records of a project, by the one index that no state change moves a record in: a scan meets each exactly once.
 */
export function filesOf(projectId: ObjectId): { path: { $gte: string; $lt: string } } {
  const hex = projectId.toHexString();
  return { path: { $gte: `${hex}/`, $lt: `${hex}0` } };
}

/** The project's file at `path` unless it is deleted; null for another project's and for text that is not a path. */
export async function findFile(app: Pick<App, 'db'>, projectId: ObjectId, path: string): Promise<FileRecord | null> {
  if (!isObjectKey(path) || !path.startsWith(`${projectId.toHexString()}/`)) return null;
  const file = await fileStore(app).findOne({ path });
  return file && file.state !== 'deleted' ? file : null;
}

/** 404, without telling whether the path ever existed. */
export function fileMissing(): AppError {
  return missing('FILE_NOT_FOUND', 'There is no file at this path');
}
