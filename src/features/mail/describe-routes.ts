import {
  ANYTHING,
  arrayOf,
  done,
  FLAG,
  ID,
  jsonBody,
  MOMENT,
  naming,
  object,
  ok,
  oneOf,
  openObject,
  optional,
  orNull,
  pageOf,
  parameter,
  PUBLIC,
  TEXT,
  WHOLE,
  wholeNumber,
  type GroupDescription,
  type Refusals,
  type RouteDescription,
  type Schema,
} from '../../http/routes/route-description.js';
import { OPERATOR, OWNER, SECRET_KEY } from '../access/describe-access.js';
import { MAIL_STATUSES } from './mail-log.js';
import { MAX_BATCH } from './read-mail.js';
import { MAIL_OPERATIONS, readTestMail } from './routes.js';

const ADDRESS: Schema = { type: 'string', minLength: 3, examples: ['ada@example.com'] };
const ADDRESSES: Schema = { anyOf: [ADDRESS, arrayOf(ADDRESS, { minItems: 1 })] };
const OPTIONAL_TEXT: Schema = { type: ['string', 'null'] };
const ADDRESSED = { to: ADDRESSES, replyTo: orNull(ADDRESSES) };
const BODIES = { html: OPTIONAL_TEXT, text: OPTIONAL_TEXT };
const SUBJECT: Schema = { type: 'string', minLength: 1, maxLength: 998 };

const MAIL: Schema = {
  title: 'Mail',
  description: 'Either a template, or a subject with html or text. Other fields are ignored.',
  type: 'object',
  required: ['to'],
  properties: {
    ...ADDRESSED,
    subject: OPTIONAL_TEXT,
    ...BODIES,
    templateId: { type: ['string', 'null'], pattern: '^[0-9a-fA-F]{24}$' },
    templateName: { type: ['string', 'null'], pattern: '^[\\w .-]{1,64}$' },
    variables: { type: ['object', 'null'], description: 'Values of the placeholders.' },
  },
};
const BATCH_MAIL: Schema = {
  title: 'BatchMail',
  type: 'object',
  required: ['to', 'subject'],
  properties: { ...ADDRESSED, subject: SUBJECT, ...BODIES },
};

const TEMPLATE_USED: Schema = object(
  { id: orNull(ID), scope: oneOf('project', 'system', 'embedded'), key: TEXT, name: TEXT },
  'TemplateUsed',
);
const QUEUED_MAIL: Schema = object(
  {
    id: ID,
    provider: oneOf('byok', 'default'),
    monthlyUsage: WHOLE,
    monthlyLimit: orNull(WHOLE),
    'templateUsed?': TEMPLATE_USED,
  },
  'QueuedMail',
);
const BATCH_RESULT: Schema = {
  title: 'BatchResult',
  anyOf: [object({ id: TEXT }), object({ error: object({ message: TEXT }) })],
};
const MAIL_LOG: Schema = object(
  {
    id: ID,
    providerEmailId: orNull(TEXT),
    to: { anyOf: [TEXT, arrayOf(TEXT)] },
    subject: TEXT,
    status: oneOf(...MAIL_STATUSES),
    usingByok: FLAG,
    templateUsed: orNull(TEMPLATE_USED),
    reason: orNull(TEXT),
    sentAt: MOMENT,
  },
  'MailLog',
);

const PROVIDER_REFUSALS: Refusals = {
  400: ['INVALID_MAIL'],
  403: ['BYOK_REQUIRED', 'MAIL_KEY_REFUSED'],
  404: ['NOT_FOUND'],
  429: ['RATE_LIMITED'],
  503: ['MAIL_PROVIDER_UNAVAILABLE'],
};
/** Passed on to the project's own account at the provider. */
const BY_PROVIDER = { answers: ok('What the mail provider answers', ANYTHING), refuses: PROVIDER_REFUSALS };
const WITH_SLOT: Refusals = { ...PROVIDER_REFUSALS, 429: ['RATE_LIMITED', 'MAIL_QUOTA_EXCEEDED'] };
const PROVIDER_ID = parameter('Id at the mail provider', { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' });
const PROVIDER_IDS = { audienceId: PROVIDER_ID, contactId: PROVIDER_ID, id: PROVIDER_ID };

const CONTACT_FIELDS: Record<string, Schema> = {
  email: ADDRESS,
  firstName: { type: ['string', 'null'], maxLength: 200 },
  lastName: { type: ['string', 'null'], maxLength: 200 },
  unsubscribed: FLAG,
};
const SCHEDULED_AT: Schema = {
  type: ['string', 'null'],
  description: 'ISO 8601: when to send it.',
  examples: ['2027-01-01T09:00:00Z'],
};

const LIVE_STATUS: Omit<RouteDescription, 'id' | 'access'> = {
  summary: 'Get one mail log, with what the provider says now',
  path: { id: naming('`providerEmailId` of the mail, or the `id` of its log', 'NOT_FOUND') },
  answers: ok(
    'The log and the provider’s word',
    object({ dbLog: MAIL_LOG, last_event: TEXT, providerStatus: ANYTHING }),
  ),
};

type Operation = Omit<RouteDescription, 'access'>;

/** As MAIL_OPERATIONS in routes.ts. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  'POST /send': {
    id: 'sendMail',
    summary: 'Send one mail',
    description:
      'Queued at once, sent by the worker; takes one slot of the monthly quota. `{{name}}` in subject and bodies is replaced by the variable, escaped in html.',
    body: jsonBody(MAIL, {
      to: 'ada@example.com',
      subject: 'Hello {{name}}',
      html: '<p>Good to have you, {{name}}.</p>',
      variables: { name: 'Ada' },
    }),
    answers: ok('Queued', QUEUED_MAIL),
    refuses: {
      400: ['INVALID_MAIL', 'INVALID_TEMPLATE', 'SENDER_MISSING'],
      404: ['TEMPLATE_NOT_FOUND'],
      429: ['MAIL_QUOTA_EXCEEDED'],
    },
  },
  'POST /send-batch': {
    id: 'sendMailBatch',
    summary: `Send up to ${MAX_BATCH} mails`,
    description: 'Straight to the provider, without templates. Each result stands for itself.',
    body: jsonBody(arrayOf(BATCH_MAIL, { minItems: 1, maxItems: MAX_BATCH }), [
      { to: 'ada@example.com', subject: 'One', text: 'Hello' },
      { to: 'bob@example.com', subject: 'Two', text: 'Hello' },
    ]),
    answers: ok('The fate of each, in the order of the request', arrayOf(BATCH_RESULT)),
    refuses: { 400: ['INVALID_MAIL', 'SENDER_MISSING'], 429: ['RATE_LIMITED', 'MAIL_QUOTA_EXCEEDED'] },
  },
  'GET /logs': {
    id: 'listMailLogs',
    summary: 'List sent mails, the newest first',
    query: {
      page: parameter('Which page, from 1', wholeNumber(1)),
      limit: parameter('Logs of a page; more than 200 counts as 200', wholeNumber(50)),
    },
    answers: ok('A page', pageOf(MAIL_LOG)),
    refuses: { 400: ['INVALID_QUERY'] },
  },
  'GET /logs/:id': { id: 'getMailLog', ...LIVE_STATUS },
  'GET /logs/:id/live': { id: 'getLiveMailLog', ...LIVE_STATUS },
  'GET /audiences': { id: 'listAudiences', summary: 'List audiences', ...BY_PROVIDER },
  'POST /audiences': {
    id: 'createAudience',
    summary: 'Create an audience',
    body: jsonBody(openObject({ name: { type: 'string', minLength: 1, maxLength: 200 } }), { name: 'Readers' }),
    ...BY_PROVIDER,
  },
  'DELETE /audiences/:audienceId': { id: 'deleteAudience', summary: 'Delete an audience', ...BY_PROVIDER },
  'GET /audiences/:audienceId/contacts': {
    id: 'listContacts',
    summary: 'List the contacts of an audience',
    ...BY_PROVIDER,
  },
  'POST /audiences/:audienceId/contacts': {
    id: 'createContact',
    summary: 'Add a contact',
    body: jsonBody(
      { title: 'NewContact', type: 'object', required: ['email'], properties: CONTACT_FIELDS },
      { email: 'ada@example.com', firstName: 'Ada' },
    ),
    ...BY_PROVIDER,
  },
  'PATCH /audiences/:audienceId/contacts/:contactId': {
    id: 'updateContact',
    summary: 'Change a contact',
    body: jsonBody({ title: 'ContactChanges', type: 'object', properties: CONTACT_FIELDS }, { unsubscribed: true }),
    ...BY_PROVIDER,
  },
  'DELETE /audiences/:audienceId/contacts/:contactId': {
    id: 'deleteContact',
    summary: 'Delete a contact',
    ...BY_PROVIDER,
  },
  'POST /broadcasts': {
    id: 'createBroadcast',
    summary: 'Create a broadcast: a draft, or one that leaves at `scheduledAt`',
    body: jsonBody(
      {
        title: 'NewBroadcast',
        description: 'Needs `audienceId` (or `segmentId`, the same) and html or text.',
        type: 'object',
        required: ['subject'],
        properties: {
          audienceId: { type: ['string', 'null'] },
          segmentId: { type: ['string', 'null'] },
          from: { type: 'string', description: 'An address, or `Name <address>`; else the project’s sender.' },
          subject: SUBJECT,
          ...BODIES,
          scheduledAt: SCHEDULED_AT,
        },
      },
      { audienceId: 'aud_1', subject: 'News', html: '<p>News</p>' },
    ),
    ...BY_PROVIDER,
    refuses: { ...WITH_SLOT, 400: ['INVALID_MAIL', 'SENDER_MISSING'] },
  },
  'POST /broadcasts/:id/send': {
    id: 'sendBroadcast',
    summary: 'Send a broadcast, now or at `scheduledAt`',
    body: optional(jsonBody(openObject({ 'scheduledAt?': SCHEDULED_AT }), {})),
    ...BY_PROVIDER,
    refuses: WITH_SLOT,
  },
  'GET /broadcasts': { id: 'listBroadcasts', summary: 'List broadcasts', ...BY_PROVIDER },
  'GET /broadcasts/:id': { id: 'getBroadcast', summary: 'Get a broadcast', ...BY_PROVIDER },
  'DELETE /broadcasts/:id': { id: 'deleteBroadcast', summary: 'Delete a broadcast', ...BY_PROVIDER },
};

const RECEIVE_EVENT: RouteDescription = {
  id: 'receiveMailEvent',
  summary: 'Where the mail provider reports what became of mails',
  description:
    'Signed over the raw body with the secret `PROVIDER_WEBHOOK_SECRET`, or with the project’s own (`?project=`). Without a secret nothing is processed, and the message says so. The headers may begin with `webhook-` instead.',
  access: PUBLIC,
  query: { project: parameter('Name or id of the project whose own provider account reports', TEXT) },
  headers: {
    'svix-id': parameter('Id of the event', TEXT),
    'svix-timestamp': parameter('Seconds since 1970', TEXT),
    'svix-signature': parameter('`v1,` and the signature in base64; several are separated by spaces', TEXT),
  },
  body: { required: false, content: { '*/*': {} }, description: 'The event as JSON; read only when it is signed.' },
  answers: done('Processed, known already, or ignored'),
  refuses: { 400: ['INVALID_SIGNATURE', 'INVALID_BODY'], 413: ['BODY_TOO_LARGE'] },
};

/** As mailRoutes in routes.ts. */
export const MAIL_ROUTES: GroupDescription = {
  prefix: '/api/mail',
  tag: 'Mail',
  about:
    'Sending mail, what became of it, and, with the project’s own provider key, audiences, contacts and broadcasts at the provider.',
  path: PROVIDER_IDS,
  routes: {
    'POST /webhook': RECEIVE_EVENT,
    ...Object.fromEntries(
      Object.entries(OPERATIONS).map(([route, operation]) => [route, { ...operation, access: SECRET_KEY }]),
    ),
  },
};

const RECORDED = new Set(
  MAIL_OPERATIONS.filter(({ action }) => action !== undefined).map(
    ({ method, path }) => `${method.toUpperCase()} ${path}`,
  ),
);

const SEND = OPERATIONS['POST /send']!;

/** As mailOperatorRoutes in routes.ts. */
export const MAIL_OPERATOR_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/mail',
  tag: 'Project mail',
  about: 'The same for operators, sending excepted.',
  path: PROVIDER_IDS,
  routes: {
    ...Object.fromEntries(
      Object.entries(OPERATIONS)
        .filter(([route]) => !route.startsWith('POST /send'))
        .map(([route, { id, ...operation }]) => [
          route,
          { ...operation, id: `${id}OfProject`, access: RECORDED.has(route) ? OWNER : OPERATOR },
        ]),
    ),
    'POST /test': {
      id: 'sendTestMail',
      summary: 'Send a mail that tells whether mail works',
      description: 'It takes a slot of the monthly quota like any other mail.',
      access: OWNER,
      body: jsonBody(readTestMail.schema, { to: 'me@shop.example' }),
      answers: SEND.answers,
      ...(SEND.refuses && { refuses: SEND.refuses }),
    },
  },
};
