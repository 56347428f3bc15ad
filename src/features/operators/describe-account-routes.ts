import {
  arrayOf,
  DONE,
  envelope,
  jsonAnswer,
  jsonBody,
  listOf,
  object,
  parameter,
  TEXT,
  WHOLE,
  type GroupDescription,
} from '../../http/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { ACCOUNT, NEW_USER, SESSION, USER_CHANGES } from '../users/describe-user.js';
import { readNewPassword } from './account-routes.js';

const NAMED = { user: parameter('Id or e-mail address of the user', TEXT) };
const UNKNOWN = ['USER_NOT_FOUND'];
const ENDED = jsonAnswer('How many there were', envelope(object({ ended: WHOLE })));
const WHOLE_NUMBER = { type: 'integer', minimum: 1, maximum: 999_999_999 };

/** As in account-routes.ts. */
export const ACCOUNT_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/users',
  tag: 'Project users',
  about: 'The end users of a project, for operators, who may set what users may not.',
  routes: {
    'GET /': {
      id: 'listUsers',
      summary: 'List users, the newest first',
      access: OPERATOR,
      query: {
        page: parameter('Which page, from 1', { ...WHOLE_NUMBER, default: 1 }),
        limit: parameter('Users of a page; more than 200 counts as 200', { ...WHOLE_NUMBER, default: 50 }),
        email: parameter('Only addresses that begin with this', TEXT),
      },
      answers: {
        200: jsonAnswer(
          'A page',
          envelope(object({ items: arrayOf(ACCOUNT), total: WHOLE, page: WHOLE, limit: WHOLE })),
        ),
      },
      refuses: { 400: ['INVALID_QUERY'] },
    },
    'POST /': {
      id: 'createUser',
      summary: 'Create a user',
      access: OWNER,
      body: jsonBody(NEW_USER, { email: 'ada@example.com', password: 'correct horse battery' }),
      answers: { 201: jsonAnswer('The user', envelope(ACCOUNT)) },
      refuses: {
        400: ['VALIDATION_FAILED'],
        409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE'],
        413: ['DOCUMENT_TOO_LARGE'],
        503: ['BUSY'],
      },
    },
    'GET /:user': {
      id: 'getUser',
      summary: 'Get a user',
      access: OPERATOR,
      path: NAMED,
      answers: { 200: jsonAnswer('The user', envelope(ACCOUNT)) },
      refuses: { 404: UNKNOWN },
    },
    'PATCH /:user': {
      id: 'updateUser',
      summary: 'Change fields of a user',
      access: OWNER,
      path: NAMED,
      body: jsonBody(USER_CHANGES, { name: 'Ada Lovelace' }),
      answers: { 200: jsonAnswer('The user', envelope(ACCOUNT)) },
      refuses: {
        400: ['VALIDATION_FAILED'],
        404: UNKNOWN,
        409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
        413: ['DOCUMENT_TOO_LARGE'],
      },
    },
    'DELETE /:user': {
      id: 'deleteUser',
      summary: 'Delete a user',
      access: OWNER,
      path: NAMED,
      answers: { 200: jsonAnswer('Deleted', envelope(object({ id: TEXT }))) },
      refuses: { 404: UNKNOWN },
    },
    'POST /:user/set-password': {
      id: 'setUserPassword',
      summary: 'Set a user’s password',
      access: OWNER,
      path: NAMED,
      body: jsonBody(readNewPassword.schema, { password: 'correct horse battery' }),
      answers: { 200: jsonAnswer('Set; every session has ended', DONE) },
      refuses: { 400: ['VALIDATION_FAILED'], 404: UNKNOWN, 503: ['BUSY'] },
    },
    'POST /:user/disable': {
      id: 'disableUser',
      summary: 'Disable an account and end its sessions',
      access: OWNER,
      path: NAMED,
      answers: { 200: jsonAnswer('The user', envelope(ACCOUNT)) },
      refuses: { 404: UNKNOWN },
    },
    'POST /:user/enable': {
      id: 'enableUser',
      summary: 'Enable an account again',
      access: OWNER,
      path: NAMED,
      answers: { 200: jsonAnswer('The user', envelope(ACCOUNT)) },
      refuses: { 404: UNKNOWN },
    },
    'GET /:user/sessions': {
      id: 'listSessions',
      summary: 'List a user’s sessions',
      access: OPERATOR,
      path: NAMED,
      answers: { 200: jsonAnswer('Those that are live', envelope(listOf(SESSION))) },
      refuses: { 404: UNKNOWN },
    },
    'DELETE /:user/sessions': {
      id: 'endSessions',
      summary: 'End all sessions of a user',
      access: OWNER,
      path: NAMED,
      answers: { 200: ENDED },
      refuses: { 404: UNKNOWN },
    },
    'DELETE /:user/sessions/:session': {
      id: 'endSession',
      summary: 'End one session of a user',
      access: OWNER,
      path: { ...NAMED, session: parameter('Id of the session', TEXT) },
      answers: { 200: ENDED },
      refuses: { 404: [...UNKNOWN, 'SESSION_NOT_FOUND'] },
    },
  },
};
