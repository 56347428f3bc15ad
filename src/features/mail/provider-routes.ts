import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { AppError, invalid, missing, overLimit, unavailable } from '../../errors.js';
import {
  readRequestLine,
  ok,
  type Answer,
  type Parameters as RouteParameters,
  type PathOf,
  type RequestLine,
  type Route,
  type RouteDefinition,
  type RouteErrors,
} from '../../http/routes/route.js';
import { callResend, isProviderId, openResendClient, type ResendReply } from '../../platform/mail-provider/resend.js';
import { ANYTHING, FLAG, openObject, orNull, text, TEXT, type TypeOf } from '../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { SECRET_KEY } from '../access/key-access.js';
import { findDate } from '../collections/fields/field-type.js';
import type { Project } from '../projects/project.js';
import { requireByokKey, isSender, resolveSender } from './project-mail.js';
import { ADDRESS, checkRendered, SUBJECT } from './read-mail.js';
import { commitMailQuota, refundMailQuota, reserveMailQuota } from './sending/mail-quota.js';
import { rejectLongWait, waitForTurn } from './sending/provider-pace.js';

const KEY_PREFIX = '/api/mail';
export const OPERATOR_PREFIX = '/api/projects/:projectId/mail';

/** One thing to do with a project's mail as two routes: by the project's secret key and by an operator's token. */
interface MailOperation {
  byKey: Route;
  byOperator: Route;
}

type Definition<Path extends string, Query extends RouteParameters, Body, A extends Answer | readonly Answer[]> = Omit<
  RouteDefinition<Path, { project: Project }, Query, Body, A>,
  'access'
>;

/**
 * The two routes of an operation, whose `path` is below either prefix. `action` is what the audit log calls it when an
 * operator does it; absent = it changes nothing.
 */
export function mailOperation<
  const Line extends RequestLine,
  const Query extends RouteParameters,
  Body,
  const A extends Answer | readonly Answer[],
>(
  line: Line,
  { action, ...definition }: Definition<PathOf<Line>, Query, Body, A> & { action?: string },
): MailOperation {
  const { method, path } = readRequestLine(line);
  const { id } = definition;
  return {
    byKey: { ...definition, method, path: KEY_PREFIX + path, access: SECRET_KEY },
    byOperator: {
      ...definition,
      method,
      id: `${id}OfProject`,
      path: OPERATOR_PREFIX + path,
      access: action === undefined ? PROJECT_OPERATOR : projectOwner(action),
    },
  };
}

const NAME = text({ minLength: 1, maxLength: 200, notBlank: true, oneLine: true });
const NEW_AUDIENCE = openObject({ name: NAME });

const PERSON_NAME = orNull(text({ maxLength: 200, oneLine: true }));
const CONTACT_FIELDS = { 'firstName?': PERSON_NAME, 'lastName?': PERSON_NAME, 'unsubscribed?': FLAG };
const NEW_CONTACT = openObject({ email: ADDRESS, ...CONTACT_FIELDS }, 'NewContact');
const CONTACT_CHANGES = openObject({ 'email?': ADDRESS, ...CONTACT_FIELDS }, 'ContactChanges');
type ContactChanges = TypeOf<typeof CONTACT_CHANGES>;

type Client = Awaited<ReturnType<typeof openResendClient>>;

/**
 * Runs one call on the project's own provider account; 404 for what cannot be an id there, which must never become part
 * of its paths, 403 BYOK_REQUIRED without a key, the provider's refusals as our own errors.
 */
async function onOwnAccount<T>(
  app: App,
  project: Project,
  ids: Readonly<Record<string, string>>,
  call: (client: Client, signal: AbortSignal) => Promise<ResendReply<T>>,
): Promise<T> {
  requireProviderIds(ids);
  const client = await openResendClient(requireByokKey(app, project), app.config.resendBaseUrl);
  await rejectLongWait(app, project);
  await waitForTurn(app, project);
  const reply = await callResend((signal) => call(client, signal));
  if (reply.data !== null) return reply.data;
  throw providerError(reply);
}

/** The provider's refusal in our words; its own text is passed on where it says what the caller has to change. */
function providerError(reply: ResendReply<unknown>): AppError {
  const { statusCode, message } = reply.error ?? { statusCode: null, message: '' };
  if (statusCode === 404) return missing('NOT_FOUND', 'The email provider does not know this id');
  if (statusCode === 401 || statusCode === 403) {
    return new AppError('forbidden', 'MAIL_KEY_REFUSED', 'The email provider rejects the project’s key');
  }
  if (statusCode === 429) {
    return overLimit('RATE_LIMITED', 'The mail provider’s rate limit is exceeded', { retryAfterSeconds: 1 });
  }
  if (statusCode !== null && statusCode < 500) {
    return invalid('INVALID_MAIL', `The mail provider says: ${message.slice(0, 300)}`);
  }
  return unavailable('MAIL_PROVIDER_UNAVAILABLE', 'The mail provider cannot be reached', { retryAfterSeconds: 5 });
}

function requireProviderIds(ids: Readonly<Record<string, string>>): void {
  if (Object.values(ids).every(isProviderId)) return;
  throw missing('NOT_FOUND', 'The email provider does not know this id');
}

/** The fields of a contact that the provider takes besides its address: others are not passed on. */
function contactFields({ firstName, lastName, unsubscribed }: ContactChanges) {
  return {
    ...(typeof firstName === 'string' && { firstName }),
    ...(typeof lastName === 'string' && { lastName }),
    ...(unsubscribed !== undefined && { unsubscribed }),
  };
}

const SCHEDULED_AT = orNull({
  ...TEXT,
  description: 'Send time, ISO 8601.',
  examples: ['2027-01-01T09:00:00Z'],
});
const NEW_BROADCAST = {
  ...openObject(
    {
      'audienceId?': orNull(TEXT),
      'segmentId?': orNull(TEXT),
      'from?': { ...TEXT, description: 'An address, or `Name <address>`. Default: the project’s sender.' },
      subject: SUBJECT,
      'html?': orNull(TEXT),
      'text?': orNull(TEXT),
      'scheduledAt?': SCHEDULED_AT,
    },
    'NewBroadcast',
  ),
  description: 'Needs `audienceId` (or `segmentId`, the same) and html or text.',
};
const BROADCAST_SENDING = openObject({ 'scheduledAt?': SCHEDULED_AT });
type NewBroadcast = TypeOf<typeof NEW_BROADCAST>;

/** A broadcast request, checked (decisions.md 7). */
interface BroadcastRequest {
  segmentId: string;
  from: string;
  subject: string;
  html?: string;
  text?: string;
  scheduledAt?: string;
}

/**
 * Makes a draft, or with `scheduledAt` a broadcast that leaves then and takes its slot now. 400, 403 BYOK_REQUIRED,
 * 429.
 */
export async function createBroadcast(app: App, project: Project, body: NewBroadcast): Promise<unknown> {
  requireByokKey(app, project);
  const { scheduledAt, ...draft } = readBroadcast(app, project, body);
  const create = (scheduling: object): Promise<unknown> =>
    onOwnAccount(app, project, {}, (client, signal) =>
      client.broadcasts.create({ ...draft, ...scheduling } as Parameters<typeof client.broadcasts.create>[0], {
        signal,
      }),
    );
  if (scheduledAt === undefined) return create({});
  return withMailQuota(app, project, () => create({ send: true, scheduledAt }));
}

/** Sends a draft, now or at `scheduledAt`; one slot of the monthly quota. */
export function sendBroadcast(
  app: App,
  project: Project,
  id: string,
  body: TypeOf<typeof BROADCAST_SENDING>,
): Promise<unknown> {
  requireProviderIds({ id });
  requireByokKey(app, project);
  const scheduledAt = readSchedule(body.scheduledAt);
  return withMailQuota(app, project, () =>
    onOwnAccount(app, project, { id }, (client, signal) =>
      client.broadcasts.send(id, scheduledAt === undefined ? undefined : { scheduledAt }, { signal }),
    ),
  );
}

/**
 * A slot around one call: given back when the provider refuses, kept when it is unknown whether the mail was sent, as
 * after a crash.
 */
async function withMailQuota<T>(app: App, project: Project, call: () => Promise<T>): Promise<T> {
  const slot = new ObjectId();
  await reserveMailQuota(app, project, [slot], 'calls');
  try {
    return await call();
  } catch (error) {
    if (error instanceof AppError && error.kind !== 'unavailable') {
      await refundMailQuota(app, project._id, slot, 'calls');
    }
    throw error;
  } finally {
    await commitMailQuota(app, project._id, [slot], 'calls');
  }
}

function readBroadcast(app: App, project: Project, body: NewBroadcast): BroadcastRequest {
  const audience = body.segmentId ?? body.audienceId;
  if (!audience) throw invalid('INVALID_MAIL', 'audienceId is required');
  if (body.from !== undefined && !isSender(body.from)) {
    throw invalid('INVALID_MAIL', 'from must be an address, or Name <address>');
  }
  const { subject } = body;
  const bodies = { ...(body.html != null && { html: body.html }), ...(body.text != null && { text: body.text }) };
  checkRendered({ subject, ...bodies });
  const scheduledAt = readSchedule(body.scheduledAt);
  requireProviderIds({ audience });
  return {
    segmentId: audience,
    from: resolveSender(app, project, body.from),
    subject,
    ...bodies,
    ...(scheduledAt !== undefined && { scheduledAt }),
  };
}

function readSchedule(value: string | null | undefined): string | undefined {
  if (value === undefined || value === null) return undefined;
  const moment = findDate(value);
  if (!moment) throw invalid('INVALID_MAIL', 'scheduledAt must be an ISO 8601 date-time');
  return moment.toISOString();
}

const PROVIDER_ID = {
  description: 'Id at the email provider',
  schema: text({ pattern: '^[A-Za-z0-9_-]{1,64}$' }),
};
export const PROVIDER_IDS: RouteParameters = { audienceId: PROVIDER_ID, contactId: PROVIDER_ID, id: PROVIDER_ID };

const ERRORS: RouteErrors = {
  400: ['INVALID_MAIL'],
  403: ['BYOK_REQUIRED', 'MAIL_KEY_REFUSED'],
  404: ['NOT_FOUND'],
  429: ['RATE_LIMITED'],
  503: ['MAIL_PROVIDER_UNAVAILABLE'],
};
const WITH_QUOTA: RouteErrors = { ...ERRORS, 429: ['RATE_LIMITED', 'MAIL_QUOTA_EXCEEDED'] };

/** Passed on to the project's own account at the provider. */
const BY_PROVIDER = {
  answers: ok({ ...ANYTHING, description: 'The response of the email provider.' }, 'Success'),
  errors: ERRORS,
};

/** Audiences, contacts and broadcasts at the mail provider, with the project's own key (rest-api.md 4.4). */
export const PROVIDER_OPERATIONS = [
  mailOperation('GET /audiences', {
    id: 'listAudiences',
    summary: 'List audiences',
    ...BY_PROVIDER,
    handle: ({ app, project }) =>
      onOwnAccount(app, project, {}, (client, signal) => client.segments.list(undefined, { signal })),
  }),
  mailOperation('POST /audiences', {
    id: 'createAudience',
    summary: 'Create an audience',
    action: 'mail audience create',
    body: NEW_AUDIENCE,
    example: { name: 'Readers' },
    ...BY_PROVIDER,
    handle: ({ app, project, body }) =>
      onOwnAccount(app, project, {}, (client, signal) => client.segments.create({ name: body.name }, { signal })),
  }),
  mailOperation('DELETE /audiences/:audienceId', {
    id: 'deleteAudience',
    summary: 'Delete an audience',
    action: 'mail audience delete',
    ...BY_PROVIDER,
    handle: ({ app, project, params }) =>
      onOwnAccount(app, project, params, (client, signal) => client.segments.remove(params.audienceId, { signal })),
  }),
  mailOperation('GET /audiences/:audienceId/contacts', {
    id: 'listContacts',
    summary: 'List the contacts of an audience',
    ...BY_PROVIDER,
    handle: ({ app, project, params }) =>
      onOwnAccount(app, project, params, (client, signal) =>
        client.contacts.list({ segmentId: params.audienceId }, { signal }),
      ),
  }),
  mailOperation('POST /audiences/:audienceId/contacts', {
    id: 'createContact',
    summary: 'Add a contact',
    action: 'mail contact create',
    body: NEW_CONTACT,
    example: { email: 'ada@example.com', firstName: 'Ada' },
    ...BY_PROVIDER,
    handle: ({ app, project, params, body }) =>
      onOwnAccount(app, project, params, (client, signal) =>
        client.contacts.create({ ...params, email: body.email, ...contactFields(body) }, { signal }),
      ),
  }),
  mailOperation('PATCH /audiences/:audienceId/contacts/:contactId', {
    id: 'updateContact',
    summary: 'Change a contact',
    action: 'mail contact update',
    body: CONTACT_CHANGES,
    example: { unsubscribed: true },
    ...BY_PROVIDER,
    handle({ app, project, params, body }) {
      requireProviderIds(params);
      const fields = contactFields(body);
      if (body.email === undefined && Object.keys(fields).length === 0) {
        throw invalid('INVALID_BODY', 'There is nothing to change');
      }
      const { audienceId, contactId: id } = params;
      return onOwnAccount(app, project, params, (client, signal) =>
        client.contacts.update({ audienceId, id, ...fields }, { signal }),
      );
    },
  }),
  mailOperation('DELETE /audiences/:audienceId/contacts/:contactId', {
    id: 'deleteContact',
    summary: 'Delete a contact',
    action: 'mail contact delete',
    ...BY_PROVIDER,
    handle: ({ app, project, params }) =>
      onOwnAccount(app, project, params, (client, signal) =>
        client.contacts.remove({ audienceId: params.audienceId, id: params.contactId }, { signal }),
      ),
  }),
  mailOperation('POST /broadcasts', {
    id: 'createBroadcast',
    summary: 'Create a draft broadcast, or schedule it with `scheduledAt`',
    action: 'mail broadcast create',
    body: NEW_BROADCAST,
    example: { audienceId: 'aud_1', subject: 'News', html: '<p>News</p>' },
    ...BY_PROVIDER,
    errors: { ...WITH_QUOTA, 400: ['INVALID_MAIL', 'SENDER_MISSING'] },
    handle: ({ app, project, body }) => createBroadcast(app, project, body),
  }),
  mailOperation('POST /broadcasts/:id/send', {
    id: 'sendBroadcast',
    summary: 'Send a broadcast, now or at `scheduledAt`',
    action: 'mail broadcast send',
    body: BROADCAST_SENDING,
    bodyIsOptional: true,
    example: {},
    ...BY_PROVIDER,
    errors: WITH_QUOTA,
    handle: ({ app, project, params, body }) => sendBroadcast(app, project, params.id, body),
  }),
  mailOperation('GET /broadcasts', {
    id: 'listBroadcasts',
    summary: 'List broadcasts',
    ...BY_PROVIDER,
    handle: ({ app, project }) =>
      onOwnAccount(app, project, {}, (client, signal) => client.broadcasts.list(undefined, { signal })),
  }),
  mailOperation('GET /broadcasts/:id', {
    id: 'getBroadcast',
    summary: 'Get a broadcast',
    ...BY_PROVIDER,
    handle: ({ app, project, params }) =>
      onOwnAccount(app, project, params, (client, signal) => client.broadcasts.get(params.id, { signal })),
  }),
  mailOperation('DELETE /broadcasts/:id', {
    id: 'deleteBroadcast',
    summary: 'Delete a broadcast',
    action: 'mail broadcast delete',
    ...BY_PROVIDER,
    handle: ({ app, project, params }) =>
      onOwnAccount(app, project, params, (client, signal) => client.broadcasts.remove(params.id, { signal })),
  }),
];
