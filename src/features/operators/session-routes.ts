import type { App } from '../../app.js';
import { clientSignal } from '../../http/requests/client-signal.js';
import { requestIdOf } from '../../http/requests/request-id.js';
import { done, listOf, ok, PUBLIC, route, type RouteContext, wholeList } from '../../http/routes/route.js';
import { MAX_PASSWORD_BYTES, MAX_EMAIL_CHARACTERS } from '../../platform/schema/text-forms.js';
import { arrayOf, FLAG, ID, MOMENT, object, oneOf, orNull, text, TEXT, WHOLE } from '../../platform/schema/schema.js';
import {
  OPERATOR_ROLES,
  type Operator,
  type SignedInOperator,
  forgetOperators,
  operatorSessionStore,
  type OperatorSession,
} from '../access/operator.js';
import { OPERATOR } from '../access/operator-access.js';
import { clearConsoleCookie, requireConsole, setConsoleCookie } from '../access/operator-token.js';
import { actedBy } from '../access/require-operator.js';
import { withAuditEntry } from '../audit/audit-log.js';
import { rejectUnsafeValue } from '../documents/store/unsafe-values.js';
import { normaliseEmail } from '../users/credentials.js';
import { openByLink, endOperatorSessions, listOperatorSessions, type OpenedSession } from './operator-sessions.js';
import { presentOperator } from './manage-operators.js';
import {
  logInOperator,
  changeOwnPassword,
  confirmOperator,
  presentOwnSession,
  requireOwnAccount,
  type Asking,
} from './log-in-operator.js';

const ROLE = oneOf(...OPERATOR_ROLES);
const PROJECTS = { ...orNull(arrayOf(ID)), description: 'Ids of the operator’s projects; null means all.' };
const SHOWN_OPERATOR = object({ id: ID, email: TEXT, role: ROLE, projects: PROJECTS, createdAt: MOMENT }, 'Operator');
/** BSVC_ADMIN_TOKEN has no operator, no id and no expiry. */
const ME = object(
  { id: orNull(ID), email: TEXT, role: ROLE, projects: PROJECTS, createdAt: orNull(MOMENT), expiresAt: orNull(MOMENT) },
  'Me',
);
const SIGNED_IN = object({
  'token?': { ...TEXT, description: 'Absent with `cookie`.' },
  expiresAt: MOMENT,
  operator: SHOWN_OPERATOR,
});
const PASSWORD = text({ minLength: 1, maxBytes: MAX_PASSWORD_BYTES });
const REFUSES_WRONG_PASSWORD = {
  401: ['INVALID_CREDENTIALS'],
  403: ['NOT_SIGNED_IN'],
  423: ['ACCOUNT_LOCKED'],
  503: ['BUSY'],
};

const askingOf = (ctx: RouteContext): Asking => ({ ip: ctx.ip, requestId: requestIdOf(ctx), gone: clientSignal(ctx) });

/** Operators sign in and out and look after their own account. */
export const OPERATOR_SESSION_ROUTES = [
  route('POST /api/admin/login', {
    id: 'logInOperator',
    bodySize: 'small',
    summary: 'Sign in as an operator',
    description: 'With `cookie`, only for the console, the token is set as an HttpOnly cookie.',
    access: PUBLIC,
    rate: 'sign-in',
    body: object({
      email: text({ minLength: 1, maxLength: MAX_EMAIL_CHARACTERS }),
      password: PASSWORD,
      'cookie?': FLAG,
    }),
    example: { email: 'op@example.com', password: 'correct horse battery' },
    answers: ok(SIGNED_IN, 'Signed in'),
    errors: { 401: ['INVALID_CREDENTIALS'], 403: ['FOREIGN_REQUEST'], 423: ['ACCOUNT_LOCKED'], 503: ['BUSY'] },
    async handle({ app, ctx, body: { email, password, cookie = false } }) {
      rejectUnsafeValue(email);
      rejectUnsafeValue(password);
      if (cookie) requireConsole(app, ctx);
      const credentials = { email: normaliseEmail(email), password };
      const opened = await logInOperator(app, credentials, askingOf(ctx), { isConsole: cookie });
      return deliver(app, ctx, opened, cookie);
    },
  }),
  route('POST /api/admin/login/link', {
    id: 'useSignInLink',
    bodySize: 'small',
    summary: 'Sign in to the console with a one-time link of `bsvc console`',
    access: PUBLIC,
    body: object({ link: text({ minLength: 1, maxLength: 100 }) }),
    example: { link: 'bsvc_link_…' },
    answers: ok(SIGNED_IN, 'Signed in'),
    errors: { 401: ['LINK_INVALID'], 403: ['FOREIGN_REQUEST'] },
    async handle({ app, ctx, body: { link } }) {
      requireConsole(app, ctx);
      return deliver(app, ctx, await openByLink(app, link, requestIdOf(ctx)), true);
    },
  }),
  route('POST /api/admin/logout', {
    id: 'logOutOperator',
    bodySize: 'small',
    summary: 'Sign out',
    access: OPERATOR,
    answers: done('Signed out'),
    async handle({ app, ctx, operator: { signedIn } }) {
      if (!signedIn) return;
      await logOutOperator(app, signedIn.session);
      if (signedIn.session.isConsole) clearConsoleCookie(app, ctx);
    },
  }),
  route('GET /api/admin/me', {
    id: 'getOperator',
    summary: 'Get the signed-in operator',
    access: OPERATOR,
    answers: ok(ME, 'Operator'),
    handle({ operator: { signedIn, name, role } }) {
      if (!signedIn) return { id: null, email: name, role, projects: null, createdAt: null, expiresAt: null };
      return { ...presentOperator(signedIn.operator), expiresAt: signedIn.session.expiresAt.toISOString() };
    },
  }),
  route('POST /api/admin/me/password', {
    id: 'changeOwnPassword',
    bodySize: 'small',
    summary: 'Change your password and end all other sessions',
    access: OPERATOR,
    body: object({ currentPassword: PASSWORD, newPassword: PASSWORD }),
    example: { currentPassword: 'correct horse battery', newPassword: 'incorrect horse battery' },
    answers: done('Password changed; other sessions have ended'),
    errors: REFUSES_WRONG_PASSWORD,
    async handle({ app, ctx, operator, body }) {
      rejectUnsafeValue(body.currentPassword);
      rejectUnsafeValue(body.newPassword);
      const signedIn = requireOwnAccount(operator);
      const act = { ...actedBy(ctx), action: 'operator set-password', input: {} };
      await withAuditEntry(app, act, () => changeOwnPassword(app, signedIn, body, askingOf(ctx)));
    },
  }),
  route('POST /api/admin/me/confirm', {
    id: 'confirmOperator',
    bodySize: 'small',
    summary: 'Confirm your password',
    description: 'The console asks for it before irreversible actions. Valid for five minutes.',
    access: OPERATOR,
    body: object({ password: PASSWORD }),
    example: { password: 'correct horse battery' },
    answers: done('The password is right'),
    errors: REFUSES_WRONG_PASSWORD,
    async handle({ app, ctx, operator, body: { password } }) {
      rejectUnsafeValue(password);
      await confirmOperator(app, requireOwnAccount(operator), password, askingOf(ctx));
    },
  }),
  route('GET /api/admin/me/sessions', {
    id: 'listOwnSessions',
    summary: 'List your sessions, newest first',
    access: OPERATOR,
    answers: ok(
      listOf(
        object(
          { createdAt: MOMENT, expiresAt: MOMENT, usedAt: orNull(MOMENT), console: FLAG, current: FLAG },
          'OperatorSession',
        ),
      ),
      'Sessions',
    ),
    errors: { 403: ['NOT_SIGNED_IN'] },
    async handle({ app, operator }) {
      const signedIn = requireOwnAccount(operator);
      const sessions = await listOperatorSessions(app, signedIn.operator);
      return wholeList(sessions.map((session) => presentOwnSession(session, signedIn.session)));
    },
  }),
  route('DELETE /api/admin/me/sessions', {
    id: 'endOwnSessions',
    summary: 'End all your other sessions',
    access: OPERATOR,
    answers: ok(object({ ended: WHOLE }), 'Other sessions ended'),
    errors: { 403: ['NOT_SIGNED_IN'] },
    async handle({ app, ctx, operator }) {
      const signedIn = requireOwnAccount(operator);
      const act = { ...actedBy(ctx), action: 'operator end-sessions', input: {} };
      return { ended: await withAuditEntry(app, act, () => endOthers(app, signedIn)) };
    },
  }),
];

const endOthers = (app: App, { operator, session }: SignedInOperator): Promise<number> =>
  endOperatorSessions(app, operator, { but: session });

function deliver(app: App, ctx: RouteContext, opened: OpenedSession & { operator: Operator }, cookie: boolean) {
  const { token, expiresAt, operator } = opened;
  ctx.set('Cache-Control', 'no-store');
  if (cookie) setConsoleCookie(app, ctx, token, expiresAt.getTime() - app.clock.now());
  return { ...(!cookie && { token }), expiresAt: expiresAt.toISOString(), operator: presentOperator(operator) };
}

/** Ends a token: here at once, in other processes within a second. Harmless to repeat. */
async function logOutOperator(app: App, session: Pick<OperatorSession, '_id'>): Promise<void> {
  await operatorSessionStore(app).deleteOne({ _id: session._id });
  forgetOperators(app);
}
