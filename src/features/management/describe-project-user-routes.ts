import {
  created,
  done,
  jsonBody,
  listOf,
  naming,
  object,
  ok,
  pageOf,
  parameter,
  TEXT,
  WHOLE,
  wholeNumber,
  type GroupDescription,
} from '../../http/routes/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { ACCOUNT, IDENTITY, NEW_USER, SESSION, USER_CHANGES } from '../users/accounts/describe-user.js';
import { readNewPassword } from './project-user-routes.js';

const ENDED = ok('How many there were', object({ ended: WHOLE }));

/** As in account-routes.ts. */
export const ACCOUNT_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/users',
  tag: 'Project users',
  about: 'The end users of a project, for operators, who may set what users may not.',
  path: {
    user: naming('Id or e-mail address of the user', 'USER_NOT_FOUND'),
    session: naming('Id of the session', 'SESSION_NOT_FOUND'),
  },
  routes: {
    'GET /': {
      id: 'listUsers',
      summary: 'List users, the newest first',
      access: OPERATOR,
      query: {
        page: parameter('Which page, from 1', wholeNumber(1)),
        limit: parameter('Users of a page; more than 200 counts as 200', wholeNumber(50)),
        email: parameter('Only addresses that begin with this', TEXT),
      },
      answers: ok('A page', pageOf(ACCOUNT)),
      refuses: { 400: ['INVALID_QUERY'] },
    },
    'POST /': {
      id: 'createUser',
      summary: 'Create a user',
      access: OWNER,
      body: jsonBody(NEW_USER, { email: 'ada@example.com', password: 'correct horse battery' }),
      answers: created('The user', ACCOUNT),
      refuses: {
        400: ['VALIDATION_FAILED'],
        409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE'],
        503: ['BUSY'],
      },
    },
    'GET /:user': { id: 'getUser', summary: 'Get a user', access: OPERATOR, answers: ok('The user', ACCOUNT) },
    'PATCH /:user': {
      id: 'updateUser',
      summary: 'Change fields of a user',
      access: OWNER,
      body: jsonBody(USER_CHANGES, { name: 'Ada Lovelace' }),
      answers: ok('The user', ACCOUNT),
      refuses: {
        400: ['VALIDATION_FAILED'],
        409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
        413: ['DOCUMENT_TOO_LARGE'],
      },
    },
    'DELETE /:user': {
      id: 'deleteUser',
      summary: 'Delete a user',
      access: OWNER,
      answers: ok('Deleted', object({ id: TEXT })),
    },
    'POST /:user/set-password': {
      id: 'setUserPassword',
      summary: 'Set a user’s password',
      access: OWNER,
      body: jsonBody(readNewPassword.schema, { password: 'correct horse battery' }),
      answers: done('Set; every session has ended'),
      refuses: { 400: ['VALIDATION_FAILED'], 503: ['BUSY'] },
    },
    'POST /:user/disable': {
      id: 'disableUser',
      summary: 'Disable an account and end its sessions',
      access: OWNER,
      answers: ok('The user', ACCOUNT),
    },
    'POST /:user/enable': {
      id: 'enableUser',
      summary: 'Enable an account again',
      access: OWNER,
      answers: ok('The user', ACCOUNT),
    },
    'GET /:user/identities': {
      id: 'listUserIdentities',
      summary: 'List the identities at sign-in providers that open the account',
      access: OPERATOR,
      answers: ok('All of them, the oldest first', listOf(IDENTITY)),
    },
    'GET /:user/sessions': {
      id: 'listSessions',
      summary: 'List a user’s sessions',
      access: OPERATOR,
      answers: ok('Those that are live', listOf(SESSION)),
    },
    'DELETE /:user/sessions': {
      id: 'endSessions',
      summary: 'End all sessions of a user',
      access: OWNER,
      answers: ENDED,
    },
    'DELETE /:user/sessions/:session': {
      id: 'endSession',
      summary: 'End one session of a user',
      access: OWNER,
      answers: ENDED,
    },
  },
};
