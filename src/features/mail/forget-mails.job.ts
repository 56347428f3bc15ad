import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { isClockSteady } from '../../platform/database/clock-drift.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import { forgetOutbox } from '../../platform/mail-provider/outbox.js';
import { closeMail, type MailLog, mailLogStore } from './mail-log.js';
import { mailUsageStore } from './sending/mail-quota.js';

const BATCH = 500;

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
    while (goesOn() && (await forgetLogs(app, untilMs)) === BATCH);
    while (goesOn() && (await forgetOutbox(app.db, new Date(untilMs), BATCH)) === BATCH);
  },
};

/** Removes some of those that left the house, or failed, until a moment; how many. */
async function forgetLogs(app: App, untilMs: number): Promise<number> {
  // Their ids are in the order in which they were queued, so that no other log is looked at.
  const queued = { $lt: ObjectId.createFromTime(Math.floor(untilMs / 1000) + 1) };
  const found = await mailLogStore(app)
    .find({ _id: queued, sentAt: { $lte: new Date(untilMs) }, status: { $ne: 'queued' } })
    .sort({ _id: 1 })
    .limit(BATCH)
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
