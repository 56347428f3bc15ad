import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { removeFromOutbox } from '../../platform/mail-provider/outbox.js';
import { eventStore, mailLogStore } from './mail-log.js';
import { mailUsageStore } from './sending/mail-quota.js';
import { templateStore } from './mail-template.js';

const BATCH = 500;

/**
 * Removes logs, kept messages, templates and usage of a project that is being deleted; what is still queued is not
 * sent. Harmless to repeat.
 */
export async function removeProjectMail(app: App, projectId: ObjectId): Promise<void> {
  await templateStore(app).deleteMany({ projectId });
  for (;;) {
    const logs = await mailLogStore(app)
      .find({ projectId }, { projection: { _id: 1 } })
      .limit(BATCH)
      .toArray();
    const ids = logs.map(({ _id }) => _id);
    if (ids.length === 0) break;
    await removeFromOutbox(
      app,
      ids.map((id) => id.toHexString()),
    );
    await mailLogStore(app).deleteMany({ _id: { $in: ids } });
  }
  await eventStore(app).deleteMany({ projectId });
  await mailUsageStore(app).deleteMany({ projectId });
}
