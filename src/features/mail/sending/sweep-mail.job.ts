import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { CLOCK_DOUBT_MS } from '../../../platform/time/clock.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { closeMail, mailLogStore } from '../mail-log.js';
import { refundMailQuota, mailUsageStore } from './mail-quota.js';
import { enqueueMail } from './send-mail.js';

/** The age below which a mail is still in the hands of its worker. */
const LEFT_BEHIND_MS = 5 * 60_000;

/**
 * Finishes what a crash left half done: queued logs without a delivery job, and open slots whose mail is settled or was
 * never written.
 */
export const sweepMail: JobDefinition<App> = {
  name: 'mail.sweep',
  retry: { delaysMs: [60_000] },
  async run(app) {
    const before = new Date(app.clock.now() - LEFT_BEHIND_MS);
    // Written by a clock that has been set back since.
    const doubted = new Date(app.clock.now() + CLOCK_DOUBT_MS);
    const stranded = mailLogStore(app).find(
      { status: 'queued', $or: [{ createdAt: { $lt: before } }, { createdAt: { $gt: doubted } }] },
      { projection: { projectId: 1 } },
    );
    for await (const log of stranded) await enqueueMail(app, log);
    for await (const usage of mailUsageStore(app).find({ 'open.0': { $exists: true } })) {
      for (const id of usage.open) {
        // Ids are made by the machine's clock.
        const ageMs = app.clock.machine() - id.getTimestamp().getTime();
        if (ageMs > LEFT_BEHIND_MS || ageMs < -CLOCK_DOUBT_MS) await reconcileReservation(app, usage.projectId, id);
      }
    }
  },
};

async function reconcileReservation(app: App, projectId: ObjectId, id: ObjectId): Promise<void> {
  const log = await mailLogStore(app).findOne({ _id: id });
  if (log?.status === 'queued') return;
  if (log === null) await refundMailQuota(app, projectId, id);
  else await closeMail(app, log);
}
