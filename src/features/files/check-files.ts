import type { App } from '../../app.js';
import { AppError } from '../../errors.js';
import { DamagedFileError } from '../../platform/object-store/block-sums.js';
import type { Project } from '../projects/project.js';
import { projectStore } from '../projects/project-store.js';
import { objectOf, type FileRecord, readFileBytes, openPlace, fileStore } from './file.js';

export interface FileCheck {
  checked: number;
  /** Files in buckets that cannot be asked now, or that their project has left. */
  unreachable: number;
  damagedFiles: number;
  /** What is wrong with the first hundred of them. */
  damage: string[];
}

const MOST_DAMAGE = 100;

/**
 * Compares all confirmed files with their records: those in the data directory byte by byte, those in buckets, which
 * keep checksums of their own, by presence and size.
 */
export async function checkFiles(
  app: App,
  { signal, onProgress }: { signal: AbortSignal; onProgress: (checked: number) => void },
): Promise<FileCheck> {
  const found: FileCheck = { checked: 0, unreachable: 0, damagedFiles: 0, damage: [] };
  const owners = new ProjectReader(app);
  for await (const file of fileStore(app).find({ state: 'confirmed' }).sort({ path: 1 })) {
    signal.throwIfAborted();
    try {
      if (file.place === 'local') for await (const _bytes of readFileBytes(app, file)) signal.throwIfAborted();
      else await checkObject(app, await owners.find(file), file);
      found.checked++;
    } catch (error) {
      if (error instanceof AppError && error.kind === 'unavailable') {
        found.unreachable++;
        continue;
      }
      if (!(error instanceof DamagedFileError)) throw error;
      // It may have been deleted since it was listed.
      if (!(await fileStore(app).findOne({ _id: file._id, state: 'confirmed' }))) continue;
      found.damagedFiles++;
      if (found.damage.length < MOST_DAMAGE) found.damage.push(`${error.message}.`);
    }
    onProgress(found.checked);
  }
  return found;
}

async function checkObject(app: App, project: Project | null, file: FileRecord): Promise<void> {
  const store = await openPlace(app, project, file);
  if (!store) throw new AppError('unavailable', 'STORAGE_UNAVAILABLE', 'The project no longer uses this bucket');
  const size = await store.findSize(objectOf(file));
  if (size === null) throw new DamagedFileError(objectOf(file), 'is missing in its bucket');
  if (size !== file.size) throw new DamagedFileError(objectOf(file), `has ${size} bytes instead of ${file.size}`);
}

/** The owners of files in the order of their paths: one project after the other. */
class ProjectReader {
  readonly #app: App;
  #last: { id: string; project: Project | null } | null = null;

  constructor(app: App) {
    this.#app = app;
  }

  async find({ projectId }: FileRecord): Promise<Project | null> {
    const id = projectId.toHexString();
    if (this.#last?.id !== id) {
      this.#last = { id, project: await projectStore(this.#app).findOne({ _id: projectId }) };
    }
    return this.#last.project;
  }
}
