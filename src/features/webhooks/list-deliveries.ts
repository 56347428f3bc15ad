import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import type { Project } from '../projects/project.js';
import { deliveryStore, type Delivery } from './delivery.js';
import { requireWebhook } from './webhook-store.js';

export const DELIVERY_STATES: readonly Delivery['state'][] = ['pending', 'delivered', 'failed'];

export interface DeliveryQuery {
  state?: string;
  /** 1 to 100, default 50. */
  limit?: number;
  /** Id of a delivery: answers those before it. */
  before?: string;
}

export interface DeliveryPage {
  items: Delivery[];
  /** For `before` of the next page; null at the end. */
  next: string | null;
}

const DEFAULT_LIMIT = 50;
const MOST = 100;

/** The log of a webhook's deliveries, newest first. 400 for a bad query, 404. */
export async function listDeliveries(
  app: App,
  project: Project,
  id: string,
  { state, limit = DEFAULT_LIMIT, before }: DeliveryQuery,
): Promise<DeliveryPage> {
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST)
    throw invalid('INVALID_QUERY', `limit must be a whole number from 1 to ${MOST}`);
  if (state !== undefined && !(DELIVERY_STATES as readonly string[]).includes(state))
    throw invalid('INVALID_QUERY', `state must be one of ${DELIVERY_STATES.join(', ')}`);
  const webhook = await requireWebhook(app, project._id, id);
  const deliveries = deliveryStore(app);
  const from = before === undefined ? null : await deliveries.findOne({ _id: before, webhookId: webhook.id });
  if (before !== undefined && !from)
    throw invalid('INVALID_QUERY', 'before must be the id of a delivery of this webhook');
  const older = from && {
    $or: [{ createdAt: { $lt: from.createdAt } }, { createdAt: from.createdAt, _id: { $lt: from._id } }],
  };
  const items = (await deliveries
    .find({ webhookId: webhook.id, ...(state && { state }), ...older } as never)
    .sort({ createdAt: -1, _id: -1 })
    .limit(limit + 1)
    .toArray()) as Delivery[];
  const page = items.slice(0, limit);
  return { items: page, next: items.length > limit ? page.at(-1)!._id : null };
}
