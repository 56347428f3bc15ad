import type { Context } from 'koa';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { requireObjectBody } from '../../http/read-body.js';
import { createRouter, type RouteGroup } from '../../http/routes.js';
import { operatedProject, requireOperator, requireOwner } from '../access/require-operator.js';
import { addWebhook, type NewWebhook } from './add-webhook.js';
import { editWebhook, type WebhookChanges } from './edit-webhook.js';
import { listDeliveries } from './list-deliveries.js';
import { listWebhooks } from './list-webhooks.js';
import { presentDelivery, presentWebhook } from './present-webhook.js';
import { removeWebhook } from './remove-webhook.js';
import { replayDelivery } from './replay-delivery.js';
import { rotateSecret } from './rotate-secret.js';
import { testWebhook } from './test-webhook.js';
import { requireWebhook } from './webhook-store.js';

const PREFIX = '/api/projects/:projectId/webhooks';

/** Management of data webhooks (decisions.md 8), for operators. */
export function webhookRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);
  const operator = requireOperator(app);
  const owner = (action: string) => requireOwner(app, action);
  const project = (ctx: Context) => operatedProject(app, ctx);

  router.post('/', owner('webhook add'), async (ctx) => {
    const input = readWebhook(ctx);
    if (typeof input.url !== 'string' || input.events === undefined)
      throw invalid('INVALID_BODY', 'A webhook needs url and events');
    const { webhook, secret } = await addWebhook(app, await project(ctx), input as NewWebhook);
    ctx.status = 201;
    ctx.body = {
      success: true,
      data: { ...presentWebhook(webhook), secret },
      message: 'Webhook created. The secret is shown only now.',
    };
  });

  router.get('/', operator, async (ctx) => {
    const items = (await listWebhooks(app, await project(ctx))).map(presentWebhook);
    ctx.body = { success: true, data: { items, total: items.length }, message: 'Webhooks' };
  });

  router.get('/:id', operator, async (ctx) => {
    const webhook = await requireWebhook(app, (await project(ctx))._id, ctx.params.id!);
    ctx.body = { success: true, data: presentWebhook(webhook), message: 'Webhook' };
  });

  router.patch('/:id', owner('webhook edit'), async (ctx) => {
    const webhook = await editWebhook(app, await project(ctx), ctx.params.id!, readWebhook(ctx));
    ctx.body = { success: true, data: presentWebhook(webhook), message: 'Webhook updated' };
  });

  router.delete('/:id', owner('webhook remove'), async (ctx) => {
    const { id } = await removeWebhook(app, await project(ctx), ctx.params.id!);
    ctx.body = { success: true, data: { id: id.toHexString() }, message: 'Webhook deleted' };
  });

  router.post('/:id/rotate-secret', owner('webhook rotate-secret'), async (ctx) => {
    const { webhook, secret, previousExpiresAt } = await rotateSecret(app, await project(ctx), ctx.params.id!);
    ctx.body = {
      success: true,
      data: { ...presentWebhook(webhook), secret, previousSecretExpiresAt: previousExpiresAt.toISOString() },
      message: 'Secret rotated. The new one is shown only now.',
    };
  });

  router.post('/:id/test', owner('webhook test'), async (ctx) => {
    const delivery = await testWebhook(app, await project(ctx), ctx.params.id!);
    const message = delivery.state === 'delivered' ? 'Test event delivered' : 'Test event not delivered';
    ctx.body = { success: true, data: presentDelivery(delivery), message };
  });

  router.get('/:id/deliveries', operator, async (ctx) => {
    const limit = readParameter(ctx, 'limit');
    const page = await listDeliveries(app, await project(ctx), ctx.params.id!, {
      state: readParameter(ctx, 'state'),
      limit: limit === undefined ? undefined : /^\d{1,9}$/.test(limit) ? Number(limit) : Number.NaN,
      before: readParameter(ctx, 'before'),
    });
    ctx.body = {
      success: true,
      data: { items: page.items.map(presentDelivery), next: page.next },
      message: 'Deliveries',
    };
  });

  router.post('/:id/deliveries/:deliveryId/replay', owner('webhook replay'), async (ctx) => {
    const delivery = await replayDelivery(app, await project(ctx), ctx.params.id!, ctx.params.deliveryId!);
    ctx.status = 202;
    ctx.body = { success: true, data: presentDelivery(delivery), message: 'Delivery queued again' };
  });

  return { prefix: PREFIX, router };
}

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  url: (value) => typeof value === 'string',
  events: Array.isArray,
  description: (value) => typeof value === 'string',
  enabled: (value) => typeof value === 'boolean',
};

/** The body with known fields of the right type only; 400 otherwise. */
function readWebhook(ctx: Context): WebhookChanges {
  const body = requireObjectBody(ctx);
  for (const [name, value] of Object.entries(body)) {
    if (!Object.hasOwn(TYPES, name))
      throw invalid(
        'INVALID_BODY',
        `"${name.slice(0, 64)}" is not a field of a webhook: ${Object.keys(TYPES).join(', ')}`,
      );
    if (!TYPES[name]!(value)) throw invalid('INVALID_BODY', `${name} has the wrong type`);
  }
  return body;
}

function readParameter(ctx: Context, name: string): string | undefined {
  const value = ctx.query[name];
  if (Array.isArray(value)) throw invalid('INVALID_QUERY', `${name} is given more than once`);
  return value;
}
