import {
  arrayOf,
  created,
  envelope,
  FLAG,
  ID,
  jsonAnswer,
  jsonBody,
  listOf,
  MOMENT,
  naming,
  object,
  ok,
  oneOf,
  orNull,
  parameter,
  TEXT,
  type GroupDescription,
  type Schema,
} from '../../http/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { DELIVERY_STATES } from './list-deliveries.js';
import { ACTIONS } from './webhook-event.js';

const FIELDS: Record<string, Schema> = {
  id: ID,
  url: TEXT,
  events: arrayOf(TEXT),
  description: TEXT,
  enabled: FLAG,
  disabledReason: orNull(oneOf('requested', 'gone', 'failing')),
  failingSince: orNull(MOMENT),
  createdAt: MOMENT,
  updatedAt: MOMENT,
};
/** What presentWebhook answers. */
const WEBHOOK = object(FIELDS, 'Webhook');
const SECRET: Schema = { type: 'string', pattern: '^whsec_', description: 'Shown only now.' };

/** What presentDelivery answers. */
const DELIVERY = object(
  {
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
        durationMs: { type: 'number' },
        status: orNull({ type: 'integer' }),
        response: TEXT,
        error: orNull(TEXT),
      }),
    ),
    createdAt: MOMENT,
    updatedAt: MOMENT,
  },
  'Delivery',
);

const URL: Schema = { type: 'string', examples: ['https://shop.example/hooks'] };
const EVENTS = arrayOf(
  {
    type: 'string',
    description: `\`<collection>.<${ACTIONS.join('|')}>\`, \`<collection>.*\`, \`*.<action>\` or \`*\`.`,
  },
  { minItems: 1, maxItems: 100, examples: [['orders.insert']] },
);
const SETTINGS = { url: URL, events: EVENTS, description: TEXT, enabled: FLAG };
const BAD_SETTINGS = ['INVALID_BODY', 'INVALID_URL', 'PRIVATE_ADDRESS', 'INVALID_EVENTS', 'INVALID_DESCRIPTION'];

/** As in routes.ts. */
export const WEBHOOK_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/webhooks',
  tag: 'Project webhooks',
  about:
    'Calls to addresses of yours when documents change: signed (`webhook-id`, `webhook-timestamp`, `webhook-signature`), repeated until they are answered with 2xx, logged.',
  path: {
    id: naming('Id of the webhook', 'WEBHOOK_NOT_FOUND'),
    deliveryId: naming('Id of the delivery', 'DELIVERY_NOT_FOUND'),
  },
  routes: {
    'POST /': {
      id: 'addWebhook',
      summary: 'Register a webhook',
      access: OWNER,
      body: jsonBody(
        { ...object({ url: URL, events: EVENTS, 'description?': TEXT, 'enabled?': FLAG }), title: 'NewWebhook' },
        { url: 'https://shop.example/hooks', events: ['orders.insert'] },
      ),
      answers: created('The webhook, with its secret', object({ ...FIELDS, secret: SECRET }, 'CreatedWebhook')),
      refuses: { 400: BAD_SETTINGS, 403: ['WEBHOOK_LIMIT'] },
    },
    'GET /': {
      id: 'listWebhooks',
      summary: 'List webhooks',
      access: OPERATOR,
      answers: ok('All of them', listOf(WEBHOOK)),
    },
    'GET /:id': { id: 'getWebhook', summary: 'Get a webhook', access: OPERATOR, answers: ok('The webhook', WEBHOOK) },
    'PATCH /:id': {
      id: 'editWebhook',
      summary: 'Change a webhook',
      access: OWNER,
      body: jsonBody(
        {
          ...object(Object.fromEntries(Object.entries(SETTINGS).map(([name, schema]) => [`${name}?`, schema]))),
          title: 'WebhookChanges',
          minProperties: 1,
        },
        { enabled: false },
      ),
      answers: ok('The webhook', WEBHOOK),
      refuses: { 400: BAD_SETTINGS },
    },
    'DELETE /:id': {
      id: 'removeWebhook',
      summary: 'Delete a webhook',
      access: OWNER,
      answers: ok('Deleted', object({ id: ID })),
    },
    'POST /:id/rotate-secret': {
      id: 'rotateWebhookSecret',
      summary: 'Give a webhook a new secret',
      description: 'For 24 hours deliveries are signed with the old one as well.',
      access: OWNER,
      answers: ok(
        'The webhook, with its new secret',
        object({ ...FIELDS, secret: SECRET, previousSecretExpiresAt: MOMENT }, 'RotatedWebhook'),
      ),
    },
    'POST /:id/test': {
      id: 'testWebhook',
      summary: 'Send the test event `test.ping` at once',
      access: OWNER,
      answers: ok('What became of it', DELIVERY),
    },
    'GET /:id/deliveries': {
      id: 'listDeliveries',
      summary: 'List deliveries, the newest first',
      access: OPERATOR,
      query: {
        state: parameter('Only those in this state', oneOf(...DELIVERY_STATES)),
        limit: parameter('How many', { type: 'integer', minimum: 1, maximum: 100, default: 50 }),
        before: parameter('`next` of the page before', TEXT),
      },
      answers: ok('A page', object({ items: arrayOf(DELIVERY), next: orNull(TEXT) })),
      refuses: { 400: ['INVALID_QUERY'] },
    },
    'POST /:id/deliveries/:deliveryId/replay': {
      id: 'replayDelivery',
      summary: 'Deliver an event once more',
      access: OWNER,
      answers: { 202: jsonAnswer('Queued again', envelope(DELIVERY)) },
      refuses: { 409: ['WEBHOOK_DISABLED'] },
    },
  },
};
