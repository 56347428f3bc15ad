import {
  readRequestLine,
  ok,
  type Answer,
  type Parameters,
  type PathOf,
  type RequestLine,
  type Route,
  type RouteDefinition,
  type RouteErrors,
} from '../../http/routes/route.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { SECRET_KEY } from '../access/key-access.js';
import type { Project } from '../projects/project.js';
import { ANYTHING, text } from '../../platform/schema/schema.js';
import * as audiences from './audiences.js';

const KEY_PREFIX = '/api/mail';
export const OPERATOR_PREFIX = '/api/projects/:projectId/mail';

/** One thing to do with a project's mail as two routes: by the project's secret key and by an operator's token. */
interface MailOperation {
  byKey: Route;
  byOperator: Route;
}

type Definition<Path extends string, Query extends Parameters, Body, A extends Answer | readonly Answer[]> = Omit<
  RouteDefinition<Path, { project: Project }, Query, Body, A>,
  'access'
>;

/**
 * The two routes of an operation, whose `path` is below either prefix. `action` is what the audit log calls it when an
 * operator does it; absent = it changes nothing.
 */
export function mailOperation<
  const Line extends RequestLine,
  const Query extends Parameters,
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

const PROVIDER_ID = {
  description: 'Id at the email provider',
  schema: text({ pattern: '^[A-Za-z0-9_-]{1,64}$' }),
};
export const PROVIDER_IDS: Parameters = { audienceId: PROVIDER_ID, contactId: PROVIDER_ID, id: PROVIDER_ID };

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
    handle: ({ app, project }) => audiences.listAudiences(app, project),
  }),
  mailOperation('POST /audiences', {
    id: 'createAudience',
    summary: 'Create an audience',
    action: 'mail audience create',
    body: audiences.NEW_AUDIENCE,
    example: { name: 'Readers' },
    ...BY_PROVIDER,
    handle: ({ app, project, body }) => audiences.createAudience(app, project, body),
  }),
  mailOperation('DELETE /audiences/:audienceId', {
    id: 'deleteAudience',
    summary: 'Delete an audience',
    action: 'mail audience delete',
    ...BY_PROVIDER,
    handle: ({ app, project, params }) => audiences.deleteAudience(app, project, params.audienceId),
  }),
  mailOperation('GET /audiences/:audienceId/contacts', {
    id: 'listContacts',
    summary: 'List the contacts of an audience',
    ...BY_PROVIDER,
    handle: ({ app, project, params }) => audiences.listContacts(app, project, params.audienceId),
  }),
  mailOperation('POST /audiences/:audienceId/contacts', {
    id: 'createContact',
    summary: 'Add a contact',
    action: 'mail contact create',
    body: audiences.NEW_CONTACT,
    example: { email: 'ada@example.com', firstName: 'Ada' },
    ...BY_PROVIDER,
    handle: ({ app, project, params, body }) => audiences.createContact(app, project, params.audienceId, body),
  }),
  mailOperation('PATCH /audiences/:audienceId/contacts/:contactId', {
    id: 'updateContact',
    summary: 'Change a contact',
    action: 'mail contact update',
    body: audiences.CONTACT_CHANGES,
    example: { unsubscribed: true },
    ...BY_PROVIDER,
    handle: ({ app, project, params: { audienceId, contactId }, body }) =>
      audiences.updateContact(app, project, audienceId, contactId, body),
  }),
  mailOperation('DELETE /audiences/:audienceId/contacts/:contactId', {
    id: 'deleteContact',
    summary: 'Delete a contact',
    action: 'mail contact delete',
    ...BY_PROVIDER,
    handle: ({ app, project, params }) => audiences.deleteContact(app, project, params.audienceId, params.contactId),
  }),
  mailOperation('POST /broadcasts', {
    id: 'createBroadcast',
    summary: 'Create a draft broadcast, or schedule it with `scheduledAt`',
    action: 'mail broadcast create',
    body: audiences.NEW_BROADCAST,
    example: { audienceId: 'aud_1', subject: 'News', html: '<p>News</p>' },
    ...BY_PROVIDER,
    errors: { ...WITH_QUOTA, 400: ['INVALID_MAIL', 'SENDER_MISSING'] },
    handle: ({ app, project, body }) => audiences.createBroadcast(app, project, body),
  }),
  mailOperation('POST /broadcasts/:id/send', {
    id: 'sendBroadcast',
    summary: 'Send a broadcast, now or at `scheduledAt`',
    action: 'mail broadcast send',
    body: audiences.BROADCAST_SENDING,
    bodyIsOptional: true,
    example: {},
    ...BY_PROVIDER,
    errors: WITH_QUOTA,
    handle: ({ app, project, params, body }) => audiences.sendBroadcast(app, project, params.id, body),
  }),
  mailOperation('GET /broadcasts', {
    id: 'listBroadcasts',
    summary: 'List broadcasts',
    ...BY_PROVIDER,
    handle: ({ app, project }) => audiences.listBroadcasts(app, project),
  }),
  mailOperation('GET /broadcasts/:id', {
    id: 'getBroadcast',
    summary: 'Get a broadcast',
    ...BY_PROVIDER,
    handle: ({ app, project, params }) => audiences.getBroadcast(app, project, params.id),
  }),
  mailOperation('DELETE /broadcasts/:id', {
    id: 'deleteBroadcast',
    summary: 'Delete a broadcast',
    action: 'mail broadcast delete',
    ...BY_PROVIDER,
    handle: ({ app, project, params }) => audiences.deleteBroadcast(app, project, params.id),
  }),
];
