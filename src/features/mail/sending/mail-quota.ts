import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { overLimit } from '../../../errors.js';
import { unlessDuplicate, storeOf } from '../../../platform/database/database.js';
import { findLimit } from '../../plans/plan-limits.js';
import type { Project } from '../../projects/project.js';

/** A project's mail of one calendar month (UTC). */
export interface MailUsage {
  /** `<project id>:<YYYY-MM>` */
  _id: string;
  projectId: ObjectId;
  /** Slots taken and not given back. */
  used: number;
  /** Slots whose mail is still on its way, by the id of its log: these can be given back, each once. */
  open: ObjectId[];
  /**
   * Mails of synchronous calls, as `open`. What a killed process leaves here still counts, because
   * its call may have succeeded.
   */
  calls?: ObjectId[];
}

type ReservationKind = 'open' | 'calls';

const MAIL_USAGE = 'mail_usage';

export const mailUsageStore = storeOf<MailUsage>(MAIL_USAGE);

export interface MailQuotaUse {
  used: number;
  /** null = unlimited. */
  limit: number | null;
}

/**
 * Takes one slot of the running month for each id, all or none, by one conditional write: concurrent senders cannot
 * overrun the quota. 429 MAIL_QUOTA_EXCEEDED otherwise. Until settled or given back a slot is in `kind`.
 */
export async function reserveMailQuota(
  app: App,
  project: Project,
  ids: readonly ObjectId[],
  kind: ReservationKind = 'open',
): Promise<MailQuotaUse> {
  const limit = findLimit(project, 'mail');
  const nowMs = app.clock.now();
  const usageId = monthKey(project._id, nowMs);
  const refused = (): Error =>
    overLimit('MAIL_QUOTA_EXCEEDED', `The monthly mail quota of ${limit} is used up`, {
      retryAfterSeconds: (nextMonthMs(nowMs) - nowMs) / 1000,
    });
  if (limit !== null && ids.length > limit) throw refused();
  const room = limit === null ? {} : { used: { $lte: limit - ids.length } };
  const fresh = { projectId: project._id, ...(kind === 'calls' && { open: [] }) };
  const take = { $inc: { used: ids.length }, $push: { [kind]: { $each: [...ids] } } };
  // The record of a month is made by its first sender; the second try is for those who meet it being made.
  for (const upsert of [true, false]) {
    const taken = mailUsageStore(app).findOneAndUpdate(
      { _id: usageId, ...room },
      { ...take, ...(upsert && { $setOnInsert: fresh }) },
      { upsert, returnDocument: 'after' },
    );
    const usage = await unlessDuplicate(taken);
    if (usage) return { used: usage.used, limit };
  }
  throw refused();
}

/** Closes slots whose mail was accepted: they stay taken. Harmless to repeat. */
export async function commitMailQuota(
  app: Pick<App, 'db'>,
  projectId: ObjectId,
  ids: readonly ObjectId[],
  kind: ReservationKind = 'open',
): Promise<void> {
  const these = { [kind]: { $in: [...ids] } };
  await mailUsageStore(app).updateMany({ projectId, ...these }, { $pull: these });
}

/** Gives a slot back, in the month it was taken from, if it is still open: repeating it gives nothing back twice. */
export async function refundMailQuota(
  app: Pick<App, 'db'>,
  projectId: ObjectId,
  id: ObjectId,
  kind: ReservationKind = 'open',
): Promise<void> {
  await mailUsageStore(app).updateOne({ projectId, [kind]: id }, { $pull: { [kind]: id }, $inc: { used: -1 } });
}

/** The slots used in the current month. */
export async function readMailQuota(app: App, project: Project): Promise<MailQuotaUse> {
  const usage = await mailUsageStore(app).findOne({ _id: monthKey(project._id, app.clock.now()) });
  return { used: usage?.used ?? 0, limit: findLimit(project, 'mail') };
}

function monthKey(projectId: ObjectId, nowMs: number): string {
  return `${projectId.toHexString()}:${new Date(nowMs).toISOString().slice(0, 7)}`;
}

function nextMonthMs(nowMs: number): number {
  const now = new Date(nowMs);
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
}
