import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { DAY_MS } from '../../platform/time/clock.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import type { Project } from '../projects/project.js';
import { projectStore } from '../projects/project-store.js';
import { SCHEDULED_CALLS } from '../projects/own-code.js';
import { emptyDelivery, endedBy } from '../webhooks/deliveries/build-delivery.js';
import { deliveryId, deliveryStore, type Delivery, type DeliveryAttempt } from '../webhooks/deliveries/delivery.js';
import type { HandlerCall } from './hook.js';

const KEPT_CHARACTERS = 1024;
/** Of one hook or schedule: what a page of the log needs, and no more than a busy project can pay for. */
const MAX_KEPT = 1_000;

/** What the log says of a call. */
export type LoggedCall = Pick<HandlerCall, 'projectId' | 'ownerId' | 'id' | 'event' | 'documentId'>;

/** Notes a call in the log of deliveries, after the answer; nothing of what was sent is kept. */
export function noteCall(app: App, call: LoggedCall, attempt: DeliveryAttempt): void {
  const { projectId, ownerId, id, event, documentId = null } = call;
  const delivery: Delivery = {
    ...emptyDelivery(id, { id: ownerId }, attempt.at.getTime()),
    ...endedBy({ ...attempt, response: attempt.response.slice(0, KEPT_CHARACTERS) }, attempt.error === null),
    ...{ _id: `${deliveryId(id, ownerId)}.${attempt.at.getTime()}`, projectId, event, documentId, lane: id, seq: 0 },
    ...{ collection: null, action: 'call' },
  };
  app.backgroundTasks.add('hooks.log', delivery, async (items) => {
    const own = new Map(items.map((item) => [item._id, item]));
    await deliveryStore(app).insertMany([...own.values()], { ordered: false });
  });
}

/** The last calls of a hook or a schedule, the newest first. */
export function listCalls(app: App, ownerId: ObjectId, limit: number): Promise<Delivery[]> {
  return deliveryStore(app).find({ webhookId: ownerId }).sort({ createdAt: -1, _id: -1 }).limit(limit).toArray();
}

/** Removes the log of a hook or schedule. */
export async function removeCalls(app: App, ownerId: ObjectId): Promise<void> {
  await deliveryStore(app).deleteMany({ webhookId: ownerId });
}

/** Whose calls a project's log holds: its hooks', and its own; those of schedules are found by their record. */
export function callOwners({ _id, hooks = [] }: Pick<Project, '_id' | 'hooks'>): ObjectId[] {
  return [_id, ...hooks.map(({ id }) => id)];
}

/** Removes calls that are older than a day, or that are too many. */
export const removeOldCallsJob: JobDefinition<App> = {
  name: 'hooks.removeOldCalls',
  retry: { delaysMs: [60_000] },
  async run(app, _payload, { signal, stopping }) {
    for await (const owner of listOwners(app)) {
      if (signal.aborted || stopping.aborted) return;
      await trimCalls(app, owner);
    }
  },
};

async function* listOwners(app: App): AsyncGenerator<ObjectId> {
  for await (const project of projectStore(app).find({})) yield* callOwners(project);
  const schedules = app.db.collection<{ _id: ObjectId }>(SCHEDULED_CALLS);
  for await (const { _id } of schedules.find({ kind: 'recurring' }, { projection: { _id: 1 } })) yield _id;
}

async function trimCalls(app: App, webhookId: ObjectId): Promise<void> {
  const [oldest] = await deliveryStore(app)
    .find({ webhookId })
    .sort({ createdAt: -1, _id: -1 })
    .skip(MAX_KEPT)
    .limit(1)
    .toArray();
  const until = Math.max(app.clock.now() - DAY_MS, oldest?.createdAt.getTime() ?? 0);
  await app.db.useReserve(() => deliveryStore(app).deleteMany({ webhookId, createdAt: { $lte: new Date(until) } }));
}
