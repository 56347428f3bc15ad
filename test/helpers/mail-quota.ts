import type { ObjectId } from 'bson';
import type { App } from '../../src/app.js';
import { mailUsageStore } from '../../src/features/mail/sending/mail-quota.js';

/** The slots that a project has used, in whatever month: one may end during a test. */
export async function slotsUsed(app: App, project: { _id: ObjectId }): Promise<number> {
  const months = await mailUsageStore(app).find({ projectId: project._id }).toArray();
  return months.reduce((sum, { used }) => sum + used, 0);
}
