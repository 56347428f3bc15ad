import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { isClockSteady } from '../../platform/database/clock-drift.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import { forgetOutbox, removeFromOutbox } from '../../platform/mail-provider/outbox.js';
import { closeMail, mailLogStore, eventStore, type MailLog } from './mail-log.js';
import { mailUsageStore } from './sending/mail-quota.js';
import { templateStore } from './mail-template.js';

const FORGOTTEN_AT_ONCE = 500;

/**
 * Removes logs of mails, and the mails that are kept instead of sent, after the time they are kept. What still waits is
 * never removed.
 */
export const forgetMailsJob: JobDefinition<App> = {
  name: 'mail.forget',
  retry: { delaysMs: [60_000] },
  async run(app, _payload, { signal, stopping }) {
    if (!(await isClockSteady(app))) return;
    const untilMs = app.clock.now() - app.config.mailKeepMs;
    const goesOn = (): boolean => !signal.aborted && !stopping.aborted;
    while (goesOn() && (await forgetLogs(app, untilMs)) === FORGOTTEN_AT_ONCE);
    while (goesOn() && (await forgetOutbox(app.db, new Date(untilMs), FORGOTTEN_AT_ONCE)) === FORGOTTEN_AT_ONCE);
  },
};

/** Removes some of those that left the house, or failed, until a moment; how many. */
async function forgetLogs(app: App, untilMs: number): Promise<number> {
  // Their ids are in the order in which they were queued, so that no other log is looked at.
  const queued = { $lt: ObjectId.createFromTime(Math.floor(untilMs / 1000) + 1) };
  const found = await mailLogStore(app)
    .find({ _id: queued, sentAt: { $lte: new Date(untilMs) }, status: { $ne: 'queued' } })
    .sort({ _id: 1 })
    .limit(FORGOTTEN_AT_ONCE)
    .toArray();
  if (found.length === 0) return 0;
  await closeReservations(app, found);
  const ids = found.map(({ _id }) => _id);
  await app.db.useReserve(() => mailLogStore(app).deleteMany({ _id: { $in: ids } }));
  return found.length;
}

/** A crash may have left reservations open whose mail has its result: without the log they would be given back. */
async function closeReservations(app: App, logs: readonly MailLog[]): Promise<void> {
  const projectIds = [...new Set(logs.map(({ projectId }) => projectId.toHexString()))];
  const open = new Set<string>();
  for await (const usage of mailUsageStore(app).find({
    projectId: { $in: projectIds.map((id) => new ObjectId(id)) },
    'open.0': { $exists: true },
  })) {
    for (const id of usage.open) open.add(id.toHexString());
  }
  for (const log of logs) if (open.has(log._id.toHexString())) await closeMail(app, log);
}

const REMOVED_AT_ONCE = 500;

/**
 * Removes logs, kept messages, templates and usage of a project that is being deleted; what is still queued is not
 * sent. Harmless to repeat.
 */
export async function removeProjectMail(app: App, projectId: ObjectId): Promise<void> {
  await templateStore(app).deleteMany({ projectId });
  for (;;) {
    const logs = await mailLogStore(app)
      .find({ projectId }, { projection: { _id: 1 } })
      .limit(REMOVED_AT_ONCE)
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
