import type { ObjectId } from 'bson';
import type { Filter } from 'mongodb';
import type { App } from '../../../app.js';
import { DAY_MS } from '../../../platform/time/clock.js';
import { deliveryStore, type Delivery } from './delivery.js';

/** Longer than an attempt can take: a delivery whose attempt was begun and never ended is due again after this. */
const CLAIM_MS = 20_000;
/** Attempts in a row that never ended, because each took its process with it. */
const MAX_UNFINISHED = 20;
const LOOK_AHEAD = 256;

/**
 * Lanes of a webhook in which something may be due, and how much of it was seen; those that wait longest first, never
 * one of `busy`.
 */
export async function findDueLanes(
  app: App,
  webhookId: ObjectId,
  busy: readonly string[],
): Promise<Map<string, number>> {
  const due = await deliveryStore(app)
    .find({
      webhookId,
      state: 'pending',
      dueAt: { $lte: new Date(app.clock.now()) },
      ...(busy.length > 0 && { lane: { $nin: [...busy] } }),
    })
    .sort({ dueAt: 1 })
    .project<{ lane: string }>({ lane: 1 })
    .limit(LOOK_AHEAD)
    .toArray();
  const lanes = new Map<string, number>();
  for (const { lane } of due) lanes.set(lane, (lanes.get(lane) ?? 0) + 1);
  return lanes;
}

/** The time at which the webhook's next delivery is due; null when nothing waits. */
export async function findNextDue(app: App, webhookId: ObjectId): Promise<Date | null> {
  const [next] = await deliveryStore(app)
    .find({ webhookId, state: 'pending' })
    .sort({ dueAt: 1 })
    .project({ dueAt: 1 })
    .limit(1)
    .toArray();
  return (next?.dueAt as Date | undefined) ?? null;
}

/**
 * The first pending delivery of a lane if it is due, else null. A run is alone with its webhook's deliveries, so
 * nothing is written; of two runs that both believe so, the second is refused when it records.
 */
export async function findLaneHead(app: App, webhookId: ObjectId, lane: string): Promise<Delivery | null> {
  const deliveries = deliveryStore(app);
  const [head] = await deliveries.find({ webhookId, state: 'pending', lane }).sort({ seq: 1 }).limit(1).toArray();
  if (!head || head.dueAt.getTime() <= app.clock.now()) return head ?? null;
  // The later ones wait for it; moved behind it, they are not looked at again before.
  await deliveries.updateMany(
    { webhookId, state: 'pending', lane, seq: { $gt: head.seq }, dueAt: { $lt: head.dueAt } },
    { $set: { dueAt: head.dueAt } },
  );
  return null;
}

/**
 * Writes down that an attempt begins: needed after a run that did not come to its end, in case this very delivery was
 * the reason. Null if it is given up for that, or another process was faster.
 */
export async function noteAttempt(app: App, delivery: Delivery): Promise<Delivery | null> {
  const { _id, claims, unfinished } = delivery;
  if (unfinished >= MAX_UNFINISHED) {
    await failDeliveries(app, { _id, claims }, 'Every attempt was cut off before its end.');
    return null;
  }
  return await deliveryStore(app).findOneAndUpdate(
    { _id, state: 'pending', claims },
    { $set: { dueAt: new Date(app.clock.now() + CLAIM_MS) }, $inc: { claims: 1, unfinished: 1 } },
    { returnDocument: 'after' },
  );
}

/** Undoes the beginning of an attempt that was interrupted before anything came of it. */
export async function handBackDelivery(app: App, { _id, claims }: Delivery): Promise<void> {
  await deliveryStore(app).updateOne(
    { _id, claims, state: 'pending' },
    { $set: { dueAt: new Date(app.clock.now()) }, $inc: { unfinished: -1 } },
  );
}

/** Gives up the waiting deliveries of a webhook that gets no more events. */
export async function failPendingDeliveries(app: App, webhookId: ObjectId): Promise<void> {
  await failDeliveries(app, { webhookId }, 'The webhook was disabled or removed.');
}

/** As long as a webhook may be disabled before its deliveries are given up. */
const DISABLED_DAYS = 30;

/** Gives up what has waited too long for a webhook that is disabled and keeps it. */
export async function failKeptDeliveries(app: App, webhookId: ObjectId): Promise<void> {
  const until = new Date(app.clock.now() - DISABLED_DAYS * DAY_MS);
  const error = `The webhook was disabled for ${DISABLED_DAYS} days.`;
  await failDeliveries(app, { webhookId, createdAt: { $lte: until } }, error);
}

/** Gives up those of the deliveries that wait. */
export async function failDeliveries(app: App, filter: Filter<Delivery>, error: string): Promise<void> {
  const now = new Date(app.clock.now());
  await deliveryStore(app).updateMany(
    { ...filter, state: 'pending' },
    {
      $set: { state: 'failed', updatedAt: now },
      $push: { attempts: { at: now, durationMs: 0, status: null, response: '', error } },
    },
  );
}
