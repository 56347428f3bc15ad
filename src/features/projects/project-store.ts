import type { UpdateFilter } from 'mongodb';
import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { storeOf } from '../../platform/database/store-of.js';
import { findObjectId } from '../../platform/ids.js';
import type { Project } from './project.js';

export const PROJECTS = 'projects';

export const projectStore = storeOf<Project>(PROJECTS);

/** The active project with that id or name, or null. A name that looks like an id is still found. */
export async function findProject(app: Pick<App, 'db'>, idOrName: string): Promise<Project | null> {
  const id = findObjectId(idOrName);
  const found = id ? await projectStore(app).findOne({ _id: id, state: 'active' }) : null;
  return found ?? (await projectStore(app).findOne({ name: idOrName, state: 'active' }));
}

/** findProject with 404 when there is none. */
export async function requireProject(app: Pick<App, 'db'>, idOrName: string): Promise<Project> {
  const project = await findProject(app, idOrName);
  if (!project) throw missing('PROJECT_NOT_FOUND', `There is no project "${idOrName}"`);
  return project;
}

/** Sets fields of one active project in one write and returns it as it is afterwards; 404 when it is gone. */
export async function updateProjectRecord(
  app: App,
  id: ObjectId,
  change: Pick<UpdateFilter<Project>, '$set' | '$unset'>,
): Promise<Project> {
  const updated = await projectStore(app).findOneAndUpdate(
    { _id: id, state: 'active' },
    { ...change, $set: { ...change.$set, updatedAt: new Date(app.clock.now()) } },
    { returnDocument: 'after' },
  );
  if (!updated) throw missing('PROJECT_NOT_FOUND', 'The project no longer exists');
  app.cache.forgetAll('callers');
  return updated;
}
