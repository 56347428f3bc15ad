import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { isClockSteady } from '../../../platform/database/clock-drift.js';
import type { JobContext, JobDefinition } from '../../../platform/jobs/job.js';
import { webhookStore } from '../webhook-store.js';
import { failKeptDeliveries } from './claim-delivery.js';
import { deliveryStore, WEBHOOK_DELIVERIES, type Delivery } from './delivery.js';
import { dropPayloads, payloadKeptMs, payloadStore, WEBHOOK_PAYLOADS, payloadId } from './payload.js';

const BATCH = 500;
/** A project over its bytes is brought so far below them that the next runs need not measure it again. */
const TRIMMED_TO = 0.9;

/**
 * Removes deliveries with their attempts after the time they are kept, the oldest of a project that has more than its
 * bytes, and payloads that no delivery needs any more. What still waits is never removed.
 */
export const removeOldDeliveriesJob: JobDefinition<App> = {
  name: 'webhooks.removeOldDeliveries',
  retry: { delaysMs: [60_000] },
  async run(app, _payload, context) {
    if (!(await isClockSteady(app))) return;
    const nowMs = app.clock.now();
    const kept = await Promise.all([WEBHOOK_DELIVERIES, WEBHOOK_PAYLOADS].map((name) => app.db.measure(name)));
    const full = kept.reduce((sum, { bytes }) => sum + bytes, 0) > app.config.deliveriesMaxBytes;
    for await (const { _id: projectId, webhooks } of webhookStore(app).find({})) {
      for (const { id, keepsWaiting } of webhooks) if (keepsWaiting) await failKeptDeliveries(app, id);
      await removeUntil(app, projectId, 'delivered', nowMs - app.config.deliveriesKeepMs, context);
      await removeUntil(app, projectId, 'failed', nowMs - app.config.keepMs, context);
      if (full) await trimProject(app, projectId, context);
    }
    await dropPayloads(app, context);
  },
};

type Ended = Exclude<Delivery['state'], 'pending'>;

/** Removes those that ended so until a moment, also of later attempts; their payloads are looked at soon. */
async function removeUntil(
  app: App,
  projectId: ObjectId,
  state: Ended,
  untilMs: number,
  { signal, stopping }: JobContext,
): Promise<void> {
  const until = new Date(untilMs);
  const ended = { projectId, state, createdAt: { $lte: until }, updatedAt: { $lte: until } };
  while (!signal.aborted && !stopping.aborted) {
    const found = await deliveryStore(app)
      .find(ended)
      .sort({ createdAt: 1, _id: 1 })
      .project<{ _id: string; eventId: string }>({ eventId: 1 })
      .limit(BATCH)
      .toArray();
    if (found.length === 0) return;
    const ids = found.map(({ _id }) => _id);
    await app.db.useReserve(() => deliveryStore(app).deleteMany({ _id: { $in: ids }, ...ended }));
    const now = new Date(app.clock.now());
    const payloads = found.map(({ eventId }) => payloadId({ projectId, eventId }));
    await app.db.useReserve(() =>
      payloadStore(app).updateMany({ _id: { $in: payloads }, checkAt: { $gt: now } }, { $set: { checkAt: now } }),
    );
    if (found.length < BATCH) return;
  }
}

/** Removes the oldest of a project that do not fit its bytes: first what was delivered, then what failed. */
async function trimProject(app: App, projectId: ObjectId, context: JobContext): Promise<void> {
  const max = app.config.deliveriesMaxBytes;
  const size = { pending: 0, failed: 0, delivered: 0 };
  for (const state of ['pending', 'failed', 'delivered'] as const) {
    for await (const { bytes } of measureEach(app, projectId, state)) size[state] += bytes;
  }
  if (size.pending + size.failed + size.delivered <= max) return;
  let room = max * TRIMMED_TO - size.pending;
  for (const state of ['failed', 'delivered'] as const) {
    for await (const { bytes, createdAt } of measureEach(app, projectId, state)) {
      room -= bytes;
      if (room >= 0) continue;
      await removeUntil(app, projectId, state, createdAt.getTime(), context);
      break;
    }
  }
  if (size.pending <= max) return;
  app.log.warn(
    { projectId: projectId.toHexString(), bytes: size.pending },
    'the deliveries that wait alone are more than a project may keep',
  );
}

/** About what a delivery takes beside its attempts. */
const DELIVERY_BYTES = 400;

/** Deliveries of a project in one state with the bytes that each takes, the newest first. */
async function* measureEach(
  app: App,
  projectId: ObjectId,
  state: Delivery['state'],
): AsyncGenerator<{ bytes: number; createdAt: Date }> {
  const { webhooks = [] } = (await webhookStore(app).findOne({ _id: projectId })) ?? {};
  const of = state === 'pending' ? { webhookId: { $in: webhooks.map(({ id }) => id) } } : { projectId };
  const withPayload = app.clock.now() - payloadKeptMs(app);
  const found = deliveryStore(app)
    .find({ ...of, state })
    .sort({ createdAt: -1, _id: -1 })
    .project<Pick<Delivery, 'createdAt' | 'updatedAt' | 'attempts' | 'bodyBytes' | 'body'>>({
      createdAt: 1,
      updatedAt: 1,
      bodyBytes: 1,
      body: 1,
      'attempts.response': 1,
    });
  for await (const { createdAt, updatedAt, attempts, bodyBytes = 0, body = '' } of found) {
    const shared = state === 'delivered' && updatedAt.getTime() <= withPayload ? 0 : bodyBytes;
    const answers = attempts.reduce((sum, { response }) => sum + DELIVERY_BYTES / 4 + response.length, 0);
    yield { bytes: DELIVERY_BYTES + body.length + shared + answers, createdAt };
  }
}
