import {
  accepted,
  created,
  listOf,
  naming,
  ok,
  parameter,
  route,
  type RouteList,
  say,
  wholeList,
  wholeNumberParameter,
} from '../../http/routes/route.js';
import {
  arrayOf,
  changes,
  FLAG,
  ID,
  integer,
  MOMENT,
  number,
  object,
  oneOf,
  orNull,
  text,
  TEXT,
  WHOLE,
} from '../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import type { ActingOperator } from '../access/require-operator.js';
import { addWebhook, MAX_DESCRIPTION_CHARACTERS, listWebhooks } from './add-webhook.js';
import { editWebhook, removeWebhook } from './edit-webhook.js';
import {
  countDeliveries,
  DEFAULT_DELIVERIES,
  DELIVERY_STATES,
  listDeliveries,
  listProjectDeliveries,
  MAX_DELIVERIES,
  readDelivery,
} from './deliveries/list-deliveries.js';
import { readPayload } from './deliveries/payload.js';
import { presentDelivery, presentToViewer, presentWebhook } from './present-webhook.js';
import { replayDelivery, testWebhook } from './deliveries/try-again.js';
import { ACTIONS, MAX_EVENTS } from './webhook-event.js';
import { rotateSecret, requireWebhook, HEADERS } from './webhook-store.js';

const FIELDS = {
  id: ID,
  url: { ...TEXT, description: 'Whole for owners; for viewers without its path and query.' },
  headers: { ...arrayOf(TEXT), description: 'Names of the headers that are sent besides.' },
  events: arrayOf(TEXT),
  description: TEXT,
  enabled: FLAG,
  disabledReason: orNull(oneOf('requested', 'gone', 'failing')),
  keepsWaiting: FLAG,
  failingSince: orNull(MOMENT),
  createdAt: MOMENT,
  updatedAt: MOMENT,
};
const presentFor = ({ role }: ActingOperator) => (role === 'owner' ? presentWebhook : presentToViewer);
const WEBHOOK = object(FIELDS, 'Webhook');
const SECRET = text({ pattern: '^whsec_', description: 'Shown only now.' });

const DELIVERY_FIELDS = {
  id: TEXT,
  webhookId: ID,
  eventId: TEXT,
  event: TEXT,
  collection: orNull(TEXT),
  documentId: orNull(TEXT),
  state: oneOf(...DELIVERY_STATES),
  nextAttemptAt: orNull(MOMENT),
  attempts: arrayOf(
    object({
      at: MOMENT,
      durationMs: number(),
      status: orNull(integer()),
      response: TEXT,
      error: orNull(TEXT),
    }),
  ),
  createdAt: MOMENT,
  updatedAt: MOMENT,
};
export const DELIVERY = object(DELIVERY_FIELDS, 'Delivery');

const EVENT = text({
  description: `\`<collection>.<${ACTIONS.join('|')}>\`, \`<collection>.*\`, \`*.<action>\` or \`*\`.`,
});
const URL = text({ examples: ['https://shop.example/hooks'] });
const EVENTS = arrayOf(EVENT, { minItems: 1, maxItems: MAX_EVENTS, examples: [['orders.insert']] });
const DESCRIPTION = text({ maxLength: MAX_DESCRIPTION_CHARACTERS });
const STRICT = { ...FLAG, description: 'Refuse an event of a collection that is not there (yet).' };
const WAITING = {
  ...oneOf('keep', 'drop'),
  description:
    'With `enabled: false`: whether deliveries that wait are kept until the webhook is enabled again, for 30 days at most, or given up, as without it.',
};

const BAD_SETTINGS = ['INVALID_URL', 'PRIVATE_ADDRESS', 'PORT_NOT_ALLOWED', 'INVALID_EVENTS', 'INVALID_HEADERS'];

/** Deliveries of a project, whatever their webhook. */
const PAGE = {
  limit: wholeNumberParameter('Number of deliveries', DEFAULT_DELIVERIES, { max: MAX_DELIVERIES }),
  before: parameter('`next` of the page before', TEXT),
};

export const DELIVERY_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/deliveries',
  tag: 'Project webhooks',
  rate: 'operator',
  routes: [
    route('GET /api/projects/:projectId/deliveries', {
      id: 'listProjectDeliveries',
      summary: 'List deliveries of all webhooks in one state, the newest first',
      access: PROJECT_OPERATOR,
      query: {
        state: parameter('Which', { ...oneOf(...DELIVERY_STATES), default: 'failed' as const }),
        ...PAGE,
      },
      answers: ok(object({ items: arrayOf(DELIVERY), next: orNull(TEXT) }), 'Deliveries'),
      errors: { 400: ['INVALID_QUERY'] },
      async handle({ app, project, query }) {
        const { items, next } = await listProjectDeliveries(app, project, query);
        return { items: items.map(presentDelivery), next };
      },
    }),
  ],
};

/** Management of data webhooks (decisions.md 8), for operators. */
export const WEBHOOK_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/webhooks',
  tag: 'Project webhooks',
  rate: 'operator',
  about:
    'Calls to addresses of yours when documents change: signed (`webhook-id`, `webhook-timestamp`, `webhook-signature`), repeated until they are answered with 2xx, logged. `actor` is who did it; `before` has the old values of what an update or removal has changed (`beforeOmitted: true` beyond 16 kB); `data` is the document as the change left it.',
  params: {
    id: naming('Id of the webhook', 'WEBHOOK_NOT_FOUND'),
    deliveryId: naming('Id of the delivery', 'DELIVERY_NOT_FOUND'),
  },
  routes: [
    route('POST /api/projects/:projectId/webhooks', {
      id: 'addWebhook',
      summary: 'Register a webhook',
      access: projectOwner('webhook add', { asksPassword: true }),
      body: object(
        {
          url: URL,
          events: EVENTS,
          'headers?': HEADERS,
          'description?': DESCRIPTION,
          'enabled?': FLAG,
          'strict?': STRICT,
        },
        'NewWebhook',
      ),
      example: { url: 'https://shop.example/hooks', events: ['orders.insert'] },
      answers: created(
        object({ ...FIELDS, secret: SECRET }, 'CreatedWebhook'),
        'Webhook created. The secret is shown only now.',
      ),
      errors: { 400: BAD_SETTINGS, 403: ['WEBHOOK_LIMIT'] },
      async handle({ app, project, body }) {
        const { webhook, secret } = await addWebhook(app, project, body);
        // It is null only for a webhook that was there already, which cannot be asked for here.
        return { ...presentWebhook(webhook), secret: secret! };
      },
    }),
    route('GET /api/projects/:projectId/webhooks', {
      id: 'listWebhooks',
      command: 'webhook list',
      summary: 'List webhooks',
      access: PROJECT_OPERATOR,
      answers: ok(listOf(WEBHOOK), 'Webhooks'),
      async handle({ app, project, operator }) {
        return wholeList((await listWebhooks(app, project)).map(presentFor(operator)));
      },
    }),
    route('GET /api/projects/:projectId/webhooks/:id', {
      id: 'getWebhook',
      summary: 'Get a webhook',
      access: PROJECT_OPERATOR,
      answers: ok(WEBHOOK, 'Webhook'),
      async handle({ app, project, operator, params }) {
        return presentFor(operator)(await requireWebhook(app, project._id, params.id));
      },
    }),
    route('PATCH /api/projects/:projectId/webhooks/:id', {
      id: 'editWebhook',
      summary: 'Change a webhook',
      access: projectOwner('webhook edit', { asksPassword: ({ url }) => url !== undefined }),
      body: changes(
        { url: URL, events: EVENTS, headers: HEADERS, description: DESCRIPTION, enabled: FLAG, waiting: WAITING },
        'WebhookChanges',
      ),
      example: { enabled: false },
      answers: ok(WEBHOOK, 'Webhook updated'),
      errors: { 400: BAD_SETTINGS },
      async handle({ app, project, params, body }) {
        return presentWebhook(await editWebhook(app, project, params.id, body));
      },
    }),
    route('DELETE /api/projects/:projectId/webhooks/:id', {
      id: 'removeWebhook',
      summary: 'Delete a webhook',
      access: projectOwner('webhook remove'),
      answers: ok(object({ id: ID }), 'Webhook deleted'),
      async handle({ app, project, params }) {
        const { id } = await removeWebhook(app, project, params.id);
        return { id: id.toHexString() };
      },
    }),
    route('POST /api/projects/:projectId/webhooks/:id/rotate-secret', {
      id: 'rotateWebhookSecret',
      summary: 'Give a webhook a new secret',
      description: 'For 24 hours deliveries are signed with the old one as well.',
      access: projectOwner('webhook rotate-secret', { asksPassword: true }),
      answers: ok(
        object({ ...FIELDS, secret: SECRET, previousSecretExpiresAt: MOMENT }, 'RotatedWebhook'),
        'Secret rotated. The new one is shown only now.',
      ),
      async handle({ app, project, params }) {
        const { webhook, secret, previousExpiresAt } = await rotateSecret(app, project, params.id);
        return { ...presentWebhook(webhook), secret, previousSecretExpiresAt: previousExpiresAt.toISOString() };
      },
    }),
    route('POST /api/projects/:projectId/webhooks/:id/test', {
      id: 'testWebhook',
      summary: 'Send the test event `test.ping` at once',
      access: projectOwner('webhook test'),
      answers: ok(DELIVERY, 'Test event delivered'),
      async handle({ app, project, params }) {
        const delivery = await testWebhook(app, project, params.id);
        const message = delivery.state === 'delivered' ? 'Test event delivered' : 'Test event not delivered';
        return say(presentDelivery(delivery), message);
      },
    }),
    route('GET /api/projects/:projectId/webhooks/:id/deliveries', {
      id: 'listDeliveries',
      command: 'webhook deliveries',
      summary: 'List deliveries, the newest first',
      access: PROJECT_OPERATOR,
      query: {
        state: parameter('Only those in this state', oneOf(...DELIVERY_STATES)),
        ...PAGE,
      },
      answers: ok(object({ items: arrayOf(DELIVERY), next: orNull(TEXT) }), 'Deliveries'),
      errors: { 400: ['INVALID_QUERY'] },
      async handle({ app, project, params, query }) {
        const { items, next } = await listDeliveries(app, project, params.id, query);
        return { items: items.map(presentDelivery), next };
      },
    }),
    route('GET /api/projects/:projectId/webhooks/:id/deliveries/:deliveryId', {
      id: 'getDelivery',
      summary: 'Get a delivery with what it sends',
      description: '`body` is null a day after the last delivery of the event, when it is no longer kept.',
      access: PROJECT_OPERATOR,
      answers: ok(object({ ...DELIVERY_FIELDS, body: orNull(TEXT) }, 'DeliveryWithBody'), 'Delivery'),
      async handle({ app, project, params }) {
        const delivery = await readDelivery(app, project, params.id, params.deliveryId);
        return { ...presentDelivery(delivery), body: await readPayload(app, delivery) };
      },
    }),
    route('GET /api/projects/:projectId/webhooks/:id/counts', {
      id: 'countDeliveries',
      summary: 'Count the deliveries of the last 24 hours by state',
      access: PROJECT_OPERATOR,
      answers: ok(object({ pending: WHOLE, delivered: WHOLE, failed: WHOLE }), 'Counts'),
      errors: { 400: ['QUERY_TIMEOUT'] },
      handle: ({ app, project, params }) => countDeliveries(app, project, params.id),
    }),
    route('POST /api/projects/:projectId/webhooks/:id/deliveries/:deliveryId/replay', {
      id: 'replayDelivery',
      summary: 'Deliver an event once more',
      access: projectOwner('webhook replay'),
      answers: accepted(DELIVERY, 'Delivery queued again'),
      errors: { 409: ['WEBHOOK_DISABLED', 'PAYLOAD_REMOVED'] },
      async handle({ app, project, params }) {
        return presentDelivery(await replayDelivery(app, project, params.id, params.deliveryId));
      },
    }),
  ],
};
