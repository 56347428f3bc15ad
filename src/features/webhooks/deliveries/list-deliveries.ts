import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import type { Project } from '../../projects/project.js';
import { deliveryStore, type Delivery } from './delivery.js';
import { requireWebhook } from '../webhook-store.js';

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

/** The log of a webhook's deliveries, newest first. 400 for a bad query, 404. */
export async function listDeliveries(
  app: App,
  project: Project,
  id: string,
  { state, limit, before }: DeliveryQuery,
): Promise<DeliveryPage> {
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
