import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { groupBy } from '../../../platform/group-by.js';
import type { JobContext } from '../../../platform/jobs/job.js';
import { readProjectWebhooks } from '../webhook-store.js';
import { deliveryId, deliveryStore } from './delivery.js';
import { payloadKeptMs, payloadStore, type Payload } from './payload.js';

const BATCH = 200;
/** Deliveries that are looked up at once, however many webhooks a project has. */
const LOOKED_UP = 2_000;

type Due = Pick<Payload, '_id' | 'checkAt'>;

/**
 * Removes the payloads that no delivery needs any more, of those that are due to be looked at; the others are looked at
 * again when they may be free.
 */
export async function dropPayloads(app: App, { signal, stopping }: JobContext): Promise<void> {
  while (!signal.aborted && !stopping.aborted) {
    const due = await payloadStore(app)
      .find({ checkAt: { $lte: new Date(app.clock.now()) } })
      .sort({ checkAt: 1 })
      .project<Due>({ checkAt: 1 })
      .limit(BATCH)
      .toArray();
    if (due.length === 0) return;
    for (const [project, payloads] of groupBy(due, ({ _id }) => _id.split('.')[0]!)) {
      await deleteUnneededPayloads(app, new ObjectId(project), payloads);
    }
  }
}

async function deleteUnneededPayloads(app: App, projectId: ObjectId, payloads: readonly Due[]): Promise<void> {
  // Deliveries to webhooks that are gone have gone with them.
  const { webhooks } = await readProjectWebhooks(app, projectId);
  const atOnce = Math.max(1, Math.floor(LOOKED_UP / Math.max(1, webhooks.length)));
  for (let at = 0; at < payloads.length; at += atOnce) {
    const part = payloads.slice(at, at + atOnce);
    const needed = await findNeeded(
      app,
      part.flatMap(({ _id }) => webhooks.map(({ id }) => deliveryId(_id.split('.')[1]!, id))),
    );
    // One that was replayed since is not as it was seen.
    const writes = part.map(({ _id, checkAt }) => {
      const until = needed.get(_id.split('.')[1]!);
      return until
        ? { updateOne: { filter: { _id, checkAt }, update: { $set: { checkAt: until } } } }
        : { deleteOne: { filter: { _id, checkAt } } };
    });
    await app.db.useReserve(() => payloadStore(app).bulkWrite(writes, { ordered: false }));
  }
}

/** Until when the payloads of events are needed at least, by event; those that are not are missing. */
async function findNeeded(app: App, deliveries: string[]): Promise<Map<string, Date>> {
  const nowMs = app.clock.now();
  const keptMs = payloadKeptMs(app);
  const found = deliveryStore(app)
    .find({ _id: { $in: deliveries } })
    .project<{ eventId: string; state: string; updatedAt: Date }>({ eventId: 1, state: 1, updatedAt: 1 });
  const needed = new Map<string, Date>();
  for await (const { eventId, state, updatedAt } of found) {
    const until = (state === 'delivered' ? updatedAt.getTime() : nowMs) + keptMs;
    if (until <= nowMs) continue;
    needed.set(eventId, new Date(Math.max(until, needed.get(eventId)?.getTime() ?? 0)));
  }
  return needed;
}
