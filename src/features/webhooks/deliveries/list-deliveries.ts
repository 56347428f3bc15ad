import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import { isTimeExceeded } from '../../../platform/database/database.js';
import { DAY_MS } from '../../../platform/time/clock.js';
import type { Project } from '../../projects/project.js';
import { deliveryMissing, deliveryStore, type Delivery } from './delivery.js';
import { listProjectWebhooks, requireWebhook } from '../webhook-store.js';

export const DELIVERY_STATES: readonly Delivery['state'][] = ['pending', 'delivered', 'failed'];

export interface DeliveryQuery {
  state?: Delivery['state'];
  /** 1 to MAX_DELIVERIES. */
  limit: number;
  /** Id of a delivery: answers those before it. */
  before?: string;
}

export interface DeliveryPage {
  items: Delivery[];
  /** The `before` of the next page; null at the end. */
  next: string | null;
}

export const DEFAULT_DELIVERIES = 50;
export const MAX_DELIVERIES = 100;

/** The deliveries of all webhooks of a project in one state, newest first. 400 for a bad query. */
export async function listProjectDeliveries(
  app: App,
  project: Project,
  query: DeliveryQuery & { state: Delivery['state'] },
): Promise<DeliveryPage> {
  if (query.state !== 'pending') return readPage(app, { projectId: project._id, action: { $ne: 'call' } }, query);
  // What waits has no list by project: it is short, and would have to be written twice for each delivery.
  const webhooks = await listProjectWebhooks(app, project._id);
  return readPage(app, { projectId: project._id, webhookId: { $in: webhooks.map(({ id }) => id) } }, query);
}

/** The log of a webhook's deliveries, newest first. 400 for a bad query, 404. */
export async function listDeliveries(
  app: App,
  project: Project,
  id: string,
  query: DeliveryQuery,
): Promise<DeliveryPage> {
  const webhook = await requireWebhook(app, project._id, id);
  return readPage(app, { webhookId: webhook.id }, query);
}

async function readPage(
  app: App,
  of: { webhookId: ObjectId } | { projectId: ObjectId; webhookId?: { $in: ObjectId[] }; action?: { $ne: 'call' } },
  { state, limit, before }: DeliveryQuery,
): Promise<DeliveryPage> {
  const deliveries = deliveryStore(app);
  const from = before === undefined ? null : await deliveries.findOne({ _id: before, ...of });
  if (before !== undefined && !from) {
    throw invalid('INVALID_QUERY', 'before must be the id of a delivery of this webhook');
  }
  const older = from && {
    $or: [{ createdAt: { $lt: from.createdAt } }, { createdAt: from.createdAt, _id: { $lt: from._id } }],
  };
  const items = await deliveries
    .find({ ...of, ...(state && { state }), ...older })
    .sort({ createdAt: -1, _id: -1 })
    .limit(limit + 1)
    .toArray();
  const page = items.slice(0, limit);
  return { items: page, next: items.length > limit ? page.at(-1)!._id : null };
}

/** One delivery with what is sent; 404 DELIVERY_NOT_FOUND. */
export async function readDelivery(app: App, project: Project, id: string, deliveryId: string): Promise<Delivery> {
  const webhook = await requireWebhook(app, project._id, id);
  const found = await deliveryStore(app).findOne({ _id: deliveryId, webhookId: webhook.id });
  if (!found) throw deliveryMissing();
  return found;
}

function failCount(error: unknown): never {
  if (!isTimeExceeded(error)) throw error;
  throw invalid('QUERY_TIMEOUT', 'Counting the deliveries took too long: list them instead', { cause: error });
}

/** How many deliveries of a webhook of the last 24 hours are in each state. 400 QUERY_TIMEOUT when it takes long. */
export async function countDeliveries(
  app: App,
  project: Project,
  id: string,
): Promise<Record<Delivery['state'], number>> {
  const webhook = await requireWebhook(app, project._id, id);
  const createdAt = { $gte: new Date(app.clock.now() - DAY_MS) };
  const maxTimeMS = app.config.queryTimeoutMs;
  const count = (state: Delivery['state']): Promise<number> =>
    deliveryStore(app).countDocuments({ webhookId: webhook.id, createdAt, state }, { maxTimeMS }).catch(failCount);
  const [pending, delivered, failed] = await Promise.all([count('pending'), count('delivered'), count('failed')]);
  return { pending, delivered, failed };
}
