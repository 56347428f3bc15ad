import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { JobContext, JobDefinition, RunAgain } from '../../../platform/jobs/job.js';
import { OutboundError } from '../../../platform/network/outbound.js';
import { withTimeout } from '../../../platform/time/with-timeout.js';
import { attemptDelivery } from './attempt-delivery.js';
import {
  failDeliveries,
  failPendingDeliveries,
  findDueLanes,
  findLaneHead,
  findNextDue,
  handBackDelivery,
  noteAttempt,
} from './claim-delivery.js';
import type { Delivery } from './delivery.js';
import { readPayload } from './payload.js';
import { recordAttempt } from './record-attempt.js';
import { findWebhook, forgetWebhooks, readProjectWebhooks, type Webhook } from '../webhook-store.js';

/** Ids as text. */
interface DeliverPayload {
  projectId: string;
  webhookId: string;
}

/** Requests to one receiver at a time: one that hangs occupies no more than this. */
const LANES_AT_ONCE = 8;
/** After this number of failures without a success between them the webhook makes room for others for a moment. */
const PATIENCE = 2 * LANES_AT_ONCE;
const REST_MS = 5_000;
/** With a lane free, new work is looked for this often even if no lane comes to an end. */
const LOOK_AGAIN_MS = 200;

/**
 * Delivers what is due for one webhook. One run per webhook at a time, so that a hanging receiver delays no other
 * webhook and events of a document keep their order.
 */
export const deliverWebhook: JobDefinition<App, DeliverPayload> = {
  name: 'webhooks.deliver',
  concurrency: 200,
  retry: { delaysMs: [1_000, 5_000, 30_000], endless: true },
  run: (app, payload, context) => deliverDue({ app, payload, context, failuresInARow: 0 }),
};

/** Schedules delivery of everything due for a webhook. Idempotent. */
export async function enqueueDelivery(
  app: App,
  { projectId, webhookId }: Pick<Delivery, 'projectId' | 'webhookId'>,
): Promise<void> {
  const payload = { projectId: projectId.toHexString(), webhookId: webhookId.toHexString() };
  const uniqueKey = `${deliverWebhook.name}:${payload.webhookId}`;
  await app.jobs.enqueue(deliverWebhook, payload, { uniqueKey, whenPresent: 'rerun' });
}

interface Run {
  app: App;
  payload: DeliverPayload;
  context: JobContext;
  failuresInARow: number;
  /** An error of our own that broke a lane, not a delivery; it ends the run. */
  broken?: { cause: unknown };
}

async function deliverDue(run: Run): Promise<RunAgain | void> {
  const { app, payload } = run;
  const webhookId = new ObjectId(payload.webhookId);
  const lanes = new Map<string, Promise<void>>();
  let ready: [lane: string, due: number][] = [];
  try {
    while (!isOver(run)) {
      if (!(await findTarget(run))) {
        // As it is stored: it may have been enabled since, by a process that asked for this very run.
        const projectId = new ObjectId(payload.projectId);
        forgetWebhooks(app, projectId);
        const { webhooks } = await readProjectWebhooks(app, projectId);
        const stored = webhooks.find(({ id }) => id.equals(webhookId));
        if (stored && !stored.disabled) continue;
        if (!stored?.keepsWaiting) await failPendingDeliveries(app, webhookId);
        return;
      }
      if (ready.length === 0) ready = [...(await findDueLanes(app, webhookId, [...lanes.keys()]))];
      for (const [lane, due] of ready.splice(0, LANES_AT_ONCE - lanes.size)) {
        lanes.set(
          lane,
          deliverLane(run, webhookId, lane, due)
            .catch((cause: unknown) => void (run.broken = { cause }))
            .finally(() => lanes.delete(lane)),
        );
      }
      if (lanes.size === 0) break;
      const anyEnds = Promise.race(lanes.values());
      await (lanes.size < LANES_AT_ONCE ? withTimeout(anyEnds, LOOK_AGAIN_MS, undefined) : anyEnds);
    }
  } finally {
    await Promise.all(lanes.values());
  }
  if (run.broken) throw run.broken.cause;
  return findNextRun(run, webhookId);
}

function isOver({ context, failuresInARow, broken }: Run): boolean {
  return context.stopping.aborted || context.signal.aborted || failuresInARow >= PATIENCE || broken !== undefined;
}

async function findNextRun(run: Run, webhookId: ObjectId): Promise<RunAgain | void> {
  const { app, context, failuresInARow } = run;
  const now = app.clock.now();
  if (context.stopping.aborted) return { again: new Date(now) };
  const dueAt = await findNextDue(app, webhookId);
  if (!dueAt) return;
  const earliest = failuresInARow >= PATIENCE ? now + REST_MS : now;
  return { again: new Date(Math.max(dueAt.getTime(), earliest)) };
}

async function findTarget({ app, payload }: Run): Promise<Webhook | null> {
  const webhook = await findWebhook(app, new ObjectId(payload.projectId), payload.webhookId);
  return webhook && !webhook.disabled ? webhook : null;
}

/** Delivers at most `due` deliveries of one lane, one after the other; ends at the first that fails. */
async function deliverLane(run: Run, webhookId: ObjectId, lane: string, due: number): Promise<void> {
  for (let count = 0; count < due && !isOver(run); count++) {
    const webhook = await findTarget(run);
    const head = webhook && (await findLaneHead(run.app, webhookId, lane));
    // After a run that was cut off, each attempt is written down first.
    const delivery = head && run.context.attempt > 1 ? await noteAttempt(run.app, head) : head;
    if (!webhook || !delivery) return;
    await deliverOne(run, webhook, delivery);
  }
}

async function deliverOne(run: Run, webhook: Webhook, delivery: Delivery): Promise<void> {
  const { app, context } = run;
  try {
    const body = await readPayload(app, delivery);
    if (body === null) {
      await failDeliveries(app, { _id: delivery._id, claims: delivery.claims }, 'The payload is no longer kept.');
      return;
    }
    const tried = await attemptDelivery(app, webhook, delivery, body, context.signal);
    const verdict = await recordAttempt(app, webhook, delivery, tried);
    run.failuresInARow = verdict?.kind === 'delivered' ? 0 : run.failuresInARow + 1;
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    if (delivery.unfinished > 0) await handBackDelivery(app, delivery);
  }
}
