import type { App } from '../../app.js';
import { admission } from '../../http/admission/admission.js';
import { IDEMPOTENCY_KEY, readIdempotencyKey } from '../../http/routes/idempotency-key.js';
import {
  cappedParameter,
  done,
  naming,
  ok,
  PAGE_PARAMETER,
  pageOf,
  parameter,
  PUBLIC,
  route,
  say,
  type RouteContext,
  type RouteList,
} from '../../http/routes/route.js';
import {
  anyOf,
  ANYTHING,
  arrayOf,
  FLAG,
  ID,
  MOMENT,
  object,
  oneOf,
  orNull,
  text,
  TEXT,
} from '../../platform/schema/schema.js';
import { SECRET_KEY } from '../access/key-access.js';
import { projectOwner } from '../access/operator-access.js';
import {
  listMailLogs,
  LOGS_PAGE,
  MAX_LOGS_PAGE,
  readLiveStatus,
  MAIL_TEXT,
  readMailContent,
  MAIL_STATUSES,
  TEMPLATE_USED,
} from './mail-log.js';
import { mailOperation, OPERATOR_PREFIX, PROVIDER_IDS, PROVIDER_OPERATIONS } from './provider-routes.js';
import { ADDRESS, MAIL, MAIL_BATCH, readBatch, readMailRequest } from './read-mail.js';
import { receiveMailEvent, type SignedEvent } from './receive-mail-event.js';
import { sendBatchIdempotently, sendMailIdempotently } from './sending/idempotent-send.js';
import { QUEUED_MAIL, sendTestMail } from './sending/send-mail.js';

const MAX_EVENT_BYTES = 256 * 1024;

const BATCH_RESULT = {
  ...anyOf(object({ id: TEXT, 'partial?': TEXT }), object({ error: object({ message: TEXT }) })),
  title: 'BatchResult',
};
const MAIL_LOG = object(
  {
    id: ID,
    providerEmailId: orNull(TEXT),
    to: anyOf(TEXT, arrayOf(TEXT)),
    subject: TEXT,
    status: oneOf(...MAIL_STATUSES),
    usingByok: FLAG,
    templateUsed: orNull(TEMPLATE_USED),
    reason: orNull(TEXT),
    sentAt: MOMENT,
  },
  'MailLog',
);

/** How a mail is answered that was queued. */
const QUEUED = {
  answers: ok(QUEUED_MAIL, 'Mail queued successfully.'),
  errors: {
    400: ['INVALID_MAIL', 'INVALID_TEMPLATE', 'SENDER_MISSING'],
    404: ['TEMPLATE_NOT_FOUND'],
    429: ['MAIL_QUOTA_EXCEEDED'],
  },
};

const liveStatus = (path: `/${string}`, id: string) =>
  mailOperation(`GET ${path}`, {
    id,
    summary: 'Get an email log with its current status at the provider',
    params: { id: naming('`providerEmailId` of the mail, or the `id` of its log', 'NOT_FOUND') },
    answers: ok(object({ dbLog: MAIL_LOG, last_event: TEXT, providerStatus: ANYTHING }), 'Success'),
    handle: ({ app, project, ctx }) => readLiveStatus(app, project, ctx.params.id!),
  });

/** By a project's key and by an operator's token alike. */
const SHARED_OPERATIONS = [
  mailOperation('GET /logs', {
    id: 'listMailLogs',
    summary: 'List email logs, newest first',
    query: {
      page: PAGE_PARAMETER,
      limit: cappedParameter('Logs of a page', LOGS_PAGE, MAX_LOGS_PAGE),
      status: parameter('Only emails with this status', oneOf(...MAIL_STATUSES)),
      to: parameter('Only emails to this address', text({ maxLength: 320 })),
    },
    answers: ok(pageOf(MAIL_LOG), 'Success'),
    errors: { 400: ['INVALID_QUERY'] },
    handle: ({ app, project, query }) => listMailLogs(app, project, query),
  }),
  liveStatus('/logs/:id', 'getMailLog'),
  liveStatus('/logs/:id/live', 'getLiveMailLog'),
  ...PROVIDER_OPERATIONS,
];

/** rest-api.md 4.4 and 6.1 */
export const MAIL_ROUTES: RouteList = {
  prefix: '/api/mail',
  tag: 'Mail',
  rate: 'plain',
  keyIn: 'header',
  about:
    'Sending mail, what became of it, and, with the project’s own provider key, audiences, contacts and broadcasts at the provider.',
  params: PROVIDER_IDS,
  routes: [
    route('POST /api/mail/webhook', {
      id: 'receiveMailEvent',
      summary: 'Receive delivery reports of the email provider',
      description:
        'The raw body is signed with `PROVIDER_WEBHOOK_SECRET`, or with the project’s secret (`?project=`). Without a secret, nothing is processed. Headers may also begin with `webhook-`.',
      access: PUBLIC,
      rate: 'free',
      ownQuery: { project: parameter('Name or id of the project with its own provider account', TEXT) },
      headers: {
        'svix-id': parameter('Id of the event', TEXT),
        'svix-timestamp': parameter('Unix time in seconds', TEXT),
        'svix-signature': parameter('`v1,` and the signature in base64; separate several by spaces', TEXT),
      },
      ownBody: {
        required: false,
        content: { '*/*': {} },
        description: 'The event as JSON.',
        isRead: true,
      },
      answers: done('Webhook processed'),
      errors: { 400: ['INVALID_SIGNATURE', 'INVALID_BODY'], 408: ['REQUEST_TIMEOUT'], 413: ['BODY_TOO_LARGE'] },
      async handle({ app, ctx }) {
        return say(undefined, await receiveMailEvent(app, signedEvent(app, ctx)));
      },
    }),
    route('POST /api/mail/send', {
      id: 'sendMail',
      summary: 'Send an email',
      description:
        'Queues the email; a worker sends it. Counts towards the monthly quota. `{{name}}` in subject and bodies is replaced by the variable, escaped in html.',
      access: SECRET_KEY,
      headers: IDEMPOTENCY_KEY,
      body: MAIL,
      example: {
        to: 'ada@example.com',
        subject: 'Hello {{name}}',
        html: '<p>Good to have you, {{name}}.</p>',
        variables: { name: 'Ada' },
      },
      answers: QUEUED.answers,
      errors: {
        ...QUEUED.errors,
        400: [...QUEUED.errors[400], 'INVALID_IDEMPOTENCY_KEY'],
        403: ['QUOTA_EXCEEDED'],
        409: ['REQUEST_UNDER_WAY'],
        422: ['IDEMPOTENCY_KEY_REUSED'],
      },
      handle: ({ app, ctx, project, body }) =>
        sendMailIdempotently(app, project, readMailRequest(body), readIdempotencyKey(ctx)),
    }),
    route('POST /api/mail/send-batch', {
      id: 'sendMailBatch',
      bodySize: 'many',
      summary: `Send up to ${String(MAIL_BATCH.maxItems)} emails`,
      description:
        'Sends directly to the provider, without templates. Results are in the order of the request; each can succeed or fail. With an `Idempotency-Key`, a repeated request returns the first response and sends nothing.',
      access: SECRET_KEY,
      headers: IDEMPOTENCY_KEY,
      body: MAIL_BATCH,
      example: [
        { to: 'ada@example.com', subject: 'One', text: 'Hello' },
        { to: 'bob@example.com', subject: 'Two', text: 'Hello' },
      ],
      answers: ok(arrayOf(BATCH_RESULT), 'Batch processed'),
      errors: {
        400: ['INVALID_MAIL', 'SENDER_MISSING', 'INVALID_IDEMPOTENCY_KEY'],
        403: ['QUOTA_EXCEEDED'],
        409: ['REQUEST_UNDER_WAY', 'BATCH_UNCERTAIN'],
        422: ['IDEMPOTENCY_KEY_REUSED'],
        429: ['RATE_LIMITED', 'MAIL_QUOTA_EXCEEDED'],
      },
      handle: ({ app, ctx, project, body }) =>
        sendBatchIdempotently(app, project, readBatch(body), readIdempotencyKey(ctx)),
    }),
    ...SHARED_OPERATIONS.map(({ byKey }) => byKey),
  ],
};

/** The same for an operator's dashboard, sending excepted (rest-api.md 4.4) but for a test of whether it works. */
export const MAIL_OPERATOR_ROUTES: RouteList = {
  prefix: OPERATOR_PREFIX,
  tag: 'Project mail',
  rate: 'operator',
  about: 'The same for operators, sending excepted.',
  params: PROVIDER_IDS,
  routes: [
    ...SHARED_OPERATIONS.map(({ byOperator }) => byOperator),
    route('POST /api/projects/:projectId/mail/test', {
      id: 'sendTestMail',
      summary: 'Send a test email',
      description: 'Counts towards the monthly quota.',
      access: projectOwner('mail test'),
      body: object({ to: ADDRESS }),
      example: { to: 'me@shop.example' },
      answers: QUEUED.answers,
      // Its text is its own: of a template there is nothing to be wrong.
      errors: { 400: ['SENDER_MISSING'], 429: ['MAIL_QUOTA_EXCEEDED'] },
      handle: ({ app, project, body }) => sendTestMail(app, project, body.to),
    }),
    route('POST /api/projects/:projectId/mail/logs/:id/text', {
      id: 'readMailText',
      summary: 'Read a pending email or one in the outbox',
      description: 'Emails can contain sign-in codes. Only owners can read them, and this is recorded.',
      access: projectOwner('mail text', { asksPassword: true }),
      params: { id: naming('Id of the mail', 'EMAIL_NOT_FOUND') },
      answers: ok(MAIL_TEXT, 'The mail'),
      errors: { 404: ['MAIL_TEXT_GONE'] },
      handle: ({ app, project, params: { id } }) => readMailContent(app, project, id),
    }),
  ],
};

function signedEvent(app: App, ctx: RouteContext): SignedEvent {
  const header = (name: string): string => ctx.get(`svix-${name}`) || ctx.get(`webhook-${name}`);
  return {
    read: () => admission(app).read(ctx, MAX_EVENT_BYTES, 'INVALID_BODY'),
    headers: { id: header('id'), timestamp: header('timestamp'), signature: header('signature') },
    project: typeof ctx.query.project === 'string' ? ctx.query.project : null,
  };
}
