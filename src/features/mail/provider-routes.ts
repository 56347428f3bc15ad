import { ok } from '../../http/routes/route.js';
import type { Parameters, RouteErrors } from '../../http/routes/route.js';
import { ANYTHING, text } from '../../platform/schema/schema.js';
import * as audiences from './audiences.js';
import * as broadcasts from './broadcasts.js';
import { mailOperation } from './mail-operation.js';

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
    body: broadcasts.NEW_BROADCAST,
    example: { audienceId: 'aud_1', subject: 'News', html: '<p>News</p>' },
    ...BY_PROVIDER,
    errors: { ...WITH_QUOTA, 400: ['INVALID_MAIL', 'SENDER_MISSING'] },
    handle: ({ app, project, body }) => broadcasts.createBroadcast(app, project, body),
  }),
  mailOperation('POST /broadcasts/:id/send', {
    id: 'sendBroadcast',
    summary: 'Send a broadcast, now or at `scheduledAt`',
    action: 'mail broadcast send',
    body: broadcasts.BROADCAST_SENDING,
    bodyIsOptional: true,
    example: {},
    ...BY_PROVIDER,
    errors: WITH_QUOTA,
    handle: ({ app, project, params, body }) => broadcasts.sendBroadcast(app, project, params.id, body),
  }),
  mailOperation('GET /broadcasts', {
    id: 'listBroadcasts',
    summary: 'List broadcasts',
    ...BY_PROVIDER,
    handle: ({ app, project }) => broadcasts.listBroadcasts(app, project),
  }),
  mailOperation('GET /broadcasts/:id', {
    id: 'getBroadcast',
    summary: 'Get a broadcast',
    ...BY_PROVIDER,
    handle: ({ app, project, params }) => broadcasts.getBroadcast(app, project, params.id),
  }),
  mailOperation('DELETE /broadcasts/:id', {
    id: 'deleteBroadcast',
    summary: 'Delete a broadcast',
    action: 'mail broadcast delete',
    ...BY_PROVIDER,
    handle: ({ app, project, params }) => broadcasts.deleteBroadcast(app, project, params.id),
  }),
];
