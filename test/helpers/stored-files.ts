import { expect } from 'vitest';
import type { App } from '../../src/app.js';
import { objectOf, type FileRecord, fileStore, filesOf } from '../../src/features/files/file.js';
import { measureStorage } from '../../src/features/files/list-files.js';
import type { Project } from '../../src/features/projects/project.js';
import { listStoredFiles } from './storage-client.js';

/**
 * What must hold of a project's files once the sweeps have come by: nothing is half gone, the bytes of the confirmed
 * ones are all that is kept, and their sum is what the quota counts. Answers the confirmed ones.
 */
export async function expectWholeFiles(app: App, dataDir: string, project: Project): Promise<FileRecord[]> {
  const files = (await fileStore(app).find(filesOf(project._id)).toArray()) as FileRecord[];
  const confirmed = files.filter(({ state }) => state === 'confirmed');
  expect(files.filter(({ state, settled }) => state !== 'confirmed' && !settled)).toEqual([]);
  const kept = (await listStoredFiles(dataDir)).filter((path) => path.includes(project._id.toHexString()));
  expect(kept.map((path) => path.split('/files/')[1]).sort()).toEqual(confirmed.map(objectOf).sort());
  const bytes = confirmed.reduce((sum, { size }) => sum + size!, 0);
  expect((await measureStorage(app, project)).bytes).toBe(bytes);
  return confirmed;
}
