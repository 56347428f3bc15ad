import type { App } from '../../app.js';
import { parseDuration } from '../../setting-readers.js';
import { forbidden, invalid } from '../../errors.js';
import { readJson } from '../../http/requests/read-body.js';
import { readText, readWhole } from '../../http/routes/read-parameter.js';
import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import { compileReader } from '../../platform/schema/json-schema.js';
import { identifyOperator, operatorOf, requireOperator } from '../access/require-operator.js';
import { listActs, presentAct } from '../audit/audit-log.js';
import { readTexts } from '../users/credentials.js';
import { presentOperator } from './list-operators.js';
import { logInOperator } from './log-in-operator.js';
import { logOutOperator } from './log-out-operator.js';

const PREFIX = '/api/admin';
const ACTS_PAGE = 50;
const MAX_ACTS_PAGE = 1_000;

/** Refuses other fields; what the two must be is said by readTexts. */
const readLogin = compileReader<object>({
  type: 'object',
  additionalProperties: false,
  properties: { email: {}, password: {} },
});

/** Operators sign in and out, see who they are and what was done (decisions.md 7). */
export function adminRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);
  const operator = requireOperator(app);

  router.post('/login', readJson(), async (ctx) => {
    const input = readTexts(readLogin(ctx.request.body), ['email', 'password']);
    const opened = await logInOperator(app, input, ctx.ip);
    ctx.set('Cache-Control', 'no-store');
    ctx.body = {
      success: true,
      data: {
        token: opened.token,
        expiresAt: opened.expiresAt.toISOString(),
        operator: presentOperator(opened.operator),
      },
      message: 'Signed in',
    };
  });

  router.post('/logout', identifyOperator(app), async (ctx) => {
    const { signedIn } = operatorOf(ctx);
    if (signedIn) await logOutOperator(app, signedIn.session);
    ctx.body = { success: true, message: 'Signed out' };
  });

  router.get('/me', operator, (ctx) => {
    const { signedIn, name, role } = operatorOf(ctx);
    const data = signedIn
      ? { ...presentOperator(signedIn.operator), expiresAt: signedIn.session.expiresAt.toISOString() }
      : { id: null, email: name, role, projects: null, createdAt: null, expiresAt: null };
    ctx.body = { success: true, data, message: 'Operator' };
  });

  router.get('/audit', operator, async (ctx) => {
    if (operatorOf(ctx).projects)
      throw forbidden(
        'ALL_PROJECTS_REQUIRED',
        'The audit log tells of all projects: it is for operators who see them all',
      );
    const since = readText(ctx.query, 'since');
    const acts = await listActs(app, {
      limit: readWhole(ctx.query, 'limit', ACTS_PAGE, MAX_ACTS_PAGE),
      action: readText(ctx.query, 'action'),
      ...(since !== undefined && { since: app.clock.now() - readDuration('since', since) }),
    });
    ctx.body = { success: true, data: { items: acts.map(presentAct) }, message: 'Acts, the newest first' };
  });

  return { prefix: PREFIX, router };
}

function readDuration(name: string, text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw invalid('INVALID_QUERY', `${name} ${(error as Error).message}`);
  }
}
