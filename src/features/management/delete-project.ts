import type { App } from '../../app.js';
import { findObjectId } from '../../platform/ids.js';
import type { Project } from '../projects/project.js';
import { CALLERS, noProject, projectStore } from '../projects/project-store.js';
import { callOwners } from '../hooks/call-log.js';
import { listSchedules } from '../hooks/schedule.js';
import { listWebhooks } from '../webhooks/list-webhooks.js';
import { enqueueFinishDeletion, removeProjectContents } from './finish-deletion.job.js';

/**
 * Removes a project with everything it owns. Its keys stop working with the first write; what a crash leaves, or a late
 * writer makes again, goes within minutes. 404 when there is none.
 */
export function deleteProject(app: App, idOrName: string): Promise<Project> {
  return app.db.useReserve(() => removeProject(app, idOrName));
}

async function removeProject(app: App, idOrName: string): Promise<Project> {
  const id = findObjectId(idOrName);
  const found = await projectStore(app).findOne(id ? { $or: [{ _id: id }, { name: idOrName }] } : { name: idOrName });
  if (!found) throw noProject(idOrName);
  const schedules = (await listSchedules(app, found._id)).map(({ _id }) => _id);
  const webhookIds = [...(await listWebhooks(app, found)).map(({ id }) => id), ...callOwners(found), ...schedules];
  await enqueueFinishDeletion(app, found, webhookIds);
  const project = await projectStore(app).findOneAndUpdate(
    { _id: found._id },
    { $set: { state: 'deleting', updatedAt: new Date(app.clock.now()) } },
    { returnDocument: 'after' },
  );
  if (!project) throw noProject(idOrName);
  app.cache.forgetAll(CALLERS);
  await removeProjectContents(app, project, webhookIds);
  await projectStore(app).deleteOne({ _id: project._id, state: 'deleting' });
  return project;
}
