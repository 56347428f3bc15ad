import { forbidden, invalid } from '../../errors.js';
import { done, ok, parameter, PUBLIC, route, wholeNumberParameter, type RouteList } from '../../http/routes/route.js';
import { MAX_PASSWORD_BYTES } from '../../platform/secrets/password.js';
import { arrayOf, ID, MOMENT, object, OBJECT, oneOf, orNull, text, TEXT } from '../../platform/schema/schema.js';
import { parseDuration } from '../../setting-readers.js';
import { OPERATOR_ROLES } from '../access/operator.js';
import { OPERATOR } from '../access/operator-access.js';
import { listActs, presentAct } from '../audit/audit-log.js';
import { refuseHostileValue } from '../documents/store/hostile-keys.js';
import { MAX_EMAIL_CHARACTERS, normaliseEmail } from '../users/credentials.js';
import { presentOperator } from './list-operators.js';
import { logInOperator } from './log-in-operator.js';
import { logOutOperator } from './log-out-operator.js';

const ACTS_PAGE = 50;
const MAX_ACTS_PAGE = 1_000;

const ROLE = oneOf(...OPERATOR_ROLES);
const PROJECTS = { ...orNull(arrayOf(ID)), description: 'Ids of the projects it sees; null = all.' };
const SHOWN_OPERATOR = object({ id: ID, email: TEXT, role: ROLE, projects: PROJECTS, createdAt: MOMENT }, 'Operator');
/** BSVC_ADMIN_TOKEN is nobody's: it has no id and no end. */
const ME = object(
  { id: orNull(ID), email: TEXT, role: ROLE, projects: PROJECTS, createdAt: orNull(MOMENT), expiresAt: orNull(MOMENT) },
  'Me',
);
const ACT = object(
  {
    id: ID,
    at: MOMENT,
    actor: TEXT,
    action: TEXT,
    input: OBJECT,
    outcome: oneOf('started', 'done', 'failed'),
    code: orNull(TEXT),
  },
  'AuditEntry',
);

const logInRoute = route({
  method: 'POST',
  path: '/api/admin/login',
  id: 'logInOperator',
  summary: 'Sign in as an operator',
  access: PUBLIC,
  body: object({
    email: text({ minLength: 1, maxLength: MAX_EMAIL_CHARACTERS }),
    password: text({ minLength: 1, maxBytes: MAX_PASSWORD_BYTES }),
  }),
  example: { email: 'op@example.com', password: 'correct horse battery' },
  answers: ok(object({ token: TEXT, expiresAt: MOMENT, operator: SHOWN_OPERATOR }), 'Signed in'),
  refuses: { 401: ['INVALID_CREDENTIALS'], 423: ['ACCOUNT_LOCKED'], 503: ['BUSY'] },
  async handle({ app, ctx, body: { email, password } }) {
    refuseHostileValue(email);
    refuseHostileValue(password);
    const opened = await logInOperator(app, { email: normaliseEmail(email), password }, ctx.ip);
    ctx.set('Cache-Control', 'no-store');
    const { token, expiresAt, operator } = opened;
    return { token, expiresAt: expiresAt.toISOString(), operator: presentOperator(operator) };
  },
});

const logOutRoute = route({
  method: 'POST',
  path: '/api/admin/logout',
  id: 'logOutOperator',
  summary: 'End the token',
  access: OPERATOR,
  answers: done('Signed out'),
  async handle({ app, operator: { signedIn } }) {
    if (signedIn) await logOutOperator(app, signedIn.session);
  },
});

const getOperatorRoute = route({
  method: 'GET',
  path: '/api/admin/me',
  id: 'getOperator',
  summary: 'Get the operator behind the token',
  access: OPERATOR,
  answers: ok(ME, 'Operator'),
  handle({ operator: { signedIn, name, role } }) {
    if (!signedIn) return { id: null, email: name, role, projects: null, createdAt: null, expiresAt: null };
    return { ...presentOperator(signedIn.operator), expiresAt: signedIn.session.expiresAt.toISOString() };
  },
});

const listActsRoute = route({
  method: 'GET',
  path: '/api/admin/audit',
  id: 'listActs',
  summary: 'List audit entries, the newest first',
  description: 'For operators who see all projects.',
  access: OPERATOR,
  query: {
    limit: wholeNumberParameter(`Number of entries; more than ${MAX_ACTS_PAGE} counts as ${MAX_ACTS_PAGE}`, ACTS_PAGE, {
      cap: MAX_ACTS_PAGE,
    }),
    action: parameter('Only entries of this action, such as `project update`', TEXT),
    since: parameter('Only entries of the last so long: `30m`, `24h`, `7d`', TEXT),
  },
  answers: ok(object({ items: arrayOf(ACT) }), 'Acts, the newest first'),
  refuses: { 400: ['INVALID_QUERY'], 403: ['ALL_PROJECTS_REQUIRED'] },
  async handle({ app, operator, query: { limit, action, since } }) {
    if (operator.projects)
      throw forbidden(
        'ALL_PROJECTS_REQUIRED',
        'The audit log tells of all projects: it is for operators who see them all',
      );
    const sinceMs = since === undefined ? undefined : app.clock.now() - readDuration('since', since);
    const acts = await listActs(app, { limit, action, since: sinceMs });
    return { items: acts.map(presentAct) };
  },
});

/** Operators sign in and out, see who they are and what was done (decisions.md 7). */
export const ADMIN_ROUTES: RouteList = {
  prefix: '/api/admin',
  tag: 'Operators',
  about: 'Operators sign in and out, see who they are and what was done.',
  routes: [logInRoute, logOutRoute, getOperatorRoute, listActsRoute],
};

function readDuration(name: string, value: string): number {
  try {
    return parseDuration(value);
  } catch (error) {
    throw invalid('INVALID_QUERY', `${name} ${(error as Error).message}`);
  }
}
