import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { findObjectId } from '../../platform/ids.js';
import { collectionStore } from '../collections/collection-store.js';
import { dropCollection } from '../collections/drop-collection.js';
import type { Collection } from '../collections/collection.js';
import { dropProjectFiles } from '../files/delete-file.js';
import type { Project } from '../projects/project.js';
import { projectStore } from '../projects/project-store.js';
import { deleteProjectUsers } from '../users/delete-project-users.js';
import { removeProjectWebhooks } from '../webhooks/remove-webhook.js';

/** Removes a project with everything it owns. Its keys stop working with the first write; repeating it finishes what a crash left. 404 when there is none. */
export async function deleteProject(app: App, idOrName: string): Promise<Project> {
  const id = findObjectId(idOrName);
  const project = (await projectStore(app).findOneAndUpdate(
    id ? { $or: [{ _id: id }, { name: idOrName }] } : { name: idOrName },
    { $set: { state: 'deleting', updatedAt: new Date(app.clock.now()) } },
    { returnDocument: 'after' },
  )) as Project | null;
  if (!project) throw missing('PROJECT_NOT_FOUND', `There is no project "${idOrName}"`);
  app.cache.forgetAll('callers');
  await deleteProjectUsers(app, project._id);
  for await (const collection of collectionStore(app).find({ projectId: project._id })) {
    await dropCollection(app, project._id, (collection as Collection).name);
  }
  await removeProjectWebhooks(app, project._id);
  await dropProjectFiles(app, project);
  await projectStore(app).deleteOne({ _id: project._id, state: 'deleting' });
  return project;
}
