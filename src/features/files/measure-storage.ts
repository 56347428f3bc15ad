import type { App } from '../../app.js';
import { object, oneOf, orNull, WHOLE, type TypeOf } from '../../platform/schema/schema.js';
import { findLimit } from '../plans/plan-limits.js';
import type { Project } from '../projects/project.js';
import { filesOf, fileStore } from './file.js';
import { usageStore } from './usage-store.js';

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
