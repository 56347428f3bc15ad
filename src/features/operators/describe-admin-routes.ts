import {
  arrayOf,
  done,
  ID,
  jsonBody,
  MOMENT,
  object,
  ok,
  oneOf,
  orNull,
  parameter,
  PUBLIC,
  TEXT,
  wholeNumber,
  type GroupDescription,
  type Schema,
} from '../../http/routes/route-description.js';
import { OPERATOR } from '../access/describe-access.js';
import { OPERATOR_ROLES } from '../access/operator.js';
import { EMAIL, PASSWORD } from '../users/accounts/describe-user.js';

const ROLE = oneOf(...OPERATOR_ROLES);
const PROJECTS = { ...orNull(arrayOf(ID)), description: 'Ids of the projects it sees; null = all.' };

/** What presentOperator answers. */
const OPERATOR_FIELDS: Record<string, Schema> = {
  id: ID,
  email: TEXT,
  role: ROLE,
  projects: PROJECTS,
  createdAt: MOMENT,
};
/** BSVC_ADMIN_TOKEN is nobody's: it has no id and no end. */
const ME = object(
  { id: orNull(ID), email: TEXT, role: ROLE, projects: PROJECTS, createdAt: orNull(MOMENT), expiresAt: orNull(MOMENT) },
  'Me',
);

/** What presentAct answers. */
const ACT = object(
  {
    id: ID,
    at: MOMENT,
    actor: TEXT,
    action: TEXT,
    input: { type: 'object' },
    outcome: oneOf('started', 'done', 'failed'),
    code: orNull(TEXT),
  },
  'AuditEntry',
);

/** As in admin-routes.ts. */
export const ADMIN_ROUTES: GroupDescription = {
  prefix: '/api/admin',
  tag: 'Operators',
  about: 'Operators sign in and out, see who they are and what was done.',
  routes: {
    'POST /login': {
      id: 'logInOperator',
      summary: 'Sign in as an operator',
      access: PUBLIC,
      body: jsonBody(object({ email: EMAIL, password: PASSWORD }), {
        email: 'op@example.com',
        password: 'correct horse battery',
      }),
      answers: ok(
        'A token for twelve hours',
        object({ token: TEXT, expiresAt: MOMENT, operator: object(OPERATOR_FIELDS, 'Operator') }),
      ),
      refuses: { 400: ['VALIDATION_FAILED'], 401: ['INVALID_CREDENTIALS'], 423: ['ACCOUNT_LOCKED'], 503: ['BUSY'] },
    },
    'POST /logout': { id: 'logOutOperator', summary: 'End the token', access: OPERATOR, answers: done('Signed out') },
    'GET /me': {
      id: 'getOperator',
      summary: 'Get the operator behind the token',
      access: OPERATOR,
      answers: ok('The operator', ME),
    },
    'GET /audit': {
      id: 'listActs',
      summary: 'List administrative acts, the newest first',
      description: 'For operators who see all projects.',
      access: OPERATOR,
      query: {
        limit: parameter('How many; more than 1000 counts as 1000', wholeNumber(50)),
        action: parameter('Only acts of this name, such as `project update`', TEXT),
        since: parameter('Only acts of the last so long: `30m`, `24h`, `7d`', TEXT),
      },
      answers: ok('Acts', object({ items: arrayOf(ACT) })),
      refuses: { 400: ['INVALID_QUERY'], 403: ['ALL_PROJECTS_REQUIRED'] },
    },
  },
};
