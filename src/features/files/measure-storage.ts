import type { App } from '../../app.js';
import { findLimit } from '../plans/plan-limits.js';
import type { Project } from '../projects/project.js';
import { filesOf, fileStore } from './file-store.js';
import { usageStore } from './usage-store.js';

export interface StorageUsage {
  files: number;
  /** Bytes charged to the quota; files in the project's own bucket are not. */
  bytes: number;
  /** null = unlimited. */
  limit: number | null;
  provider: 'internal' | 'external';
}

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
