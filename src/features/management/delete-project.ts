import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import { forgetOperators, operatorStore } from '../access/operator.js';
import { removeProjectSchedules, listSchedules } from '../hooks/schedule.js';
import { removeProjectCollections, LATE_WRITER_PASSES_MS, nextPass } from '../collections/drop-collection.js';
import { removeProjectRecords } from '../documents/write/idempotency.js';
import { dropProjectFiles } from '../files/delete-file.js';
import { removeProjectMail } from '../mail/forget-mails.js';
import type { Project } from '../projects/project.js';
import { projectStore, CALLERS, noProject } from '../projects/project-store.js';
import { deleteProjectUsers } from '../users/remove-records.job.js';
import { removeProjectWebhooks } from '../webhooks/edit-webhook.js';
import { findObjectId } from '../../platform/ids.js';
import { callOwners } from '../hooks/call-log.js';
import { listWebhooks } from '../webhooks/add-webhook.js';

interface FinishDeletionPayload {
  projectId: string;
  /** Their deliveries are found by nothing else once the project's list is gone. */
  webhookIds: string[];
  /** Milliseconds since 1970. */
  begunAt: number;
}

/**
 * Finishes the deletion of a project: removes again what processes wrote that remembered it for another half second or
 * had a request under way, and what a crash left.
 */
export const finishDeletionJob: JobDefinition<App, FinishDeletionPayload> = {
  name: 'operators.finishDeletion',
  retry: { delaysMs: [5_000, 60_000, 600_000] },
  async run(app, { projectId, webhookIds, begunAt }) {
    const _id = new ObjectId(projectId);
    const record = await projectStore(app).findOne({ _id });
    // Still active: the process died, or is yet to come, before the first write of the deletion.
    if (record?.state !== 'active') {
      await removeProjectContents(
        app,
        { _id },
        webhookIds.map((id) => new ObjectId(id)),
      );
      await projectStore(app).deleteOne({ _id, state: 'deleting' });
    }
    return nextPass(app, begunAt);
  },
};

/** Enqueues the job that finishes a deletion, before the deletion begins (decision 6). */
async function enqueueFinishDeletion(
  app: App,
  { _id }: Pick<Project, '_id'>,
  webhookIds: readonly ObjectId[],
): Promise<void> {
  const begunAt = app.clock.now();
  await app.jobs.enqueue(
    finishDeletionJob,
    { projectId: _id.toHexString(), webhookIds: webhookIds.map((id) => id.toHexString()), begunAt },
    { runAt: new Date(begunAt + LATE_WRITER_PASSES_MS[0]!) },
  );
}

/**
 * Removes everything that a project owns, its own record excepted. Harmless to repeat; queued jobs find nothing left to
 * work on.
 */
export async function removeProjectContents(
  app: App,
  project: Pick<Project, '_id'>,
  webhookIds: readonly ObjectId[],
): Promise<void> {
  const { _id } = project;
  app.ownCode.restart(_id.toHexString());
  await removeProjectSchedules(app, _id);
  await removeProjectWebhooks(app, _id, webhookIds);
  await deleteProjectUsers(app, _id);
  await removeProjectCollections(app, _id);
  await removeProjectRecords(app, _id);
  await removeProjectMail(app, _id);
  await dropProjectFiles(app, project);
  await operatorStore(app).updateMany({ projects: _id }, { $pull: { projects: _id } });
  const ofProject = { projectId: _id.toHexString() };
  await operatorStore(app).updateMany({ views: { $elemMatch: ofProject } }, { $pull: { views: ofProject } });
  forgetOperators(app);
}

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
