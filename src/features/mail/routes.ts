import type { Context, Middleware } from 'koa';
import rawBody from 'raw-body';
import type { App } from '../../app.js';
import { invalid, tooLarge } from '../../errors.js';
import { readJson, requireObjectBody } from '../../http/requests/read-body.js';
import { readWhole } from '../../http/routes/read-parameter.js';
import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import { compileReader } from '../../platform/schema/json-schema.js';
import { operatedProject, requireOperator, requireOwner } from '../access/require-operator.js';
import { callerOf, requireKey, requireSecretKey } from '../access/require-key.js';
import type { Project } from '../projects/project.js';
import * as audiences from './audiences.js';
import * as broadcasts from './broadcasts.js';
import { listMailLogs, LOGS_PAGE, MAX_LOGS_PAGE, readLiveStatus } from './list-mail-logs.js';
import { readBatch, readMailRequest } from './read-mail.js';
import { receiveMailEvent } from './receive-mail-event.js';
import { sendBatch } from './sending/send-batch.js';
import { sendMail } from './sending/send-mail.js';
import { sendTestMail } from './sending/send-test-mail.js';

const MAX_EVENT_BYTES = 256 * 1024;
const MAX_PAGE = 100_000;

/** rest-api.md 4.4 and 6.1 */
export function mailRoutes(app: App): RouteGroup {
  const router = createRouter('/api/mail');
  router.post('/webhook', async (ctx) => {
    const message = await receiveMailEvent(app, await readSignedEvent(ctx));
    ctx.body = { success: true, message };
  });
  const secret: Middleware[] = [requireKey(app), requireSecretKey()];
  const json = readJson();
  for (const { method, path, run } of MAIL_OPERATIONS) {
    const hasBody = method === 'post' || method === 'patch';
    router[method](path, ...secret, ...(hasBody ? [json] : []), async (ctx) => {
      ctx.body = await run(app, callerOf(ctx).project, ctx);
    });
  }
  return { prefix: '/api/mail', router };
}

export const readTestMail = compileReader<{ to: string }>({
  type: 'object',
  required: ['to'],
  additionalProperties: false,
  properties: { to: { type: 'string', maxLength: 320 } },
});

const OPERATOR_PREFIX = '/api/projects/:projectId/mail';

/** The same for an operator's dashboard, sending excepted (rest-api.md 4.4) but for a test of whether it works. */
export function mailOperatorRoutes(app: App): RouteGroup {
  const router = createRouter(OPERATOR_PREFIX);
  for (const { method, path, action, run } of MAIL_OPERATIONS.filter(({ path }) => !path.startsWith('/send'))) {
    router[method](path, action === undefined ? requireOperator(app) : requireOwner(app, action), async (ctx) => {
      ctx.body = await run(app, await operatedProject(app, ctx), ctx);
    });
  }
  router.post('/test', requireOwner(app, 'mail test'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const { to } = readTestMail(ctx.request.body);
    ctx.body = { success: true, data: await sendTestMail(app, project, to), message: 'Mail queued successfully.' };
  });
  return { prefix: OPERATOR_PREFIX, router };
}

interface MailOperation {
  method: 'get' | 'post' | 'patch' | 'delete';
  path: string;
  /** What the audit log calls it when an operator does it; absent = changes nothing, or is not for operators. */
  action?: string;
  run(app: App, project: Project, ctx: Context): Promise<object>;
}

/**
 * What may be done with a project's mail; its own key and an operator's token reach the same list under two addresses.
 */
export const MAIL_OPERATIONS: readonly MailOperation[] = [
  {
    method: 'post',
    path: '/send',
    async run(app, project, ctx) {
      const data = await sendMail(app, project, readMailRequest(requireObjectBody(ctx)));
      return { success: true, data, message: 'Mail queued successfully.' };
    },
  },
  {
    method: 'post',
    path: '/send-batch',
    async run(app, project, ctx) {
      const data = await sendBatch(app, project, readBatch((ctx.request as { body?: unknown }).body));
      return { success: true, data, message: 'Batch processed' };
    },
  },
  {
    method: 'get',
    path: '/logs',
    async run(app, project, ctx) {
      const data = await listMailLogs(
        app,
        project,
        readWhole(ctx.query, 'page', 1, MAX_PAGE),
        readWhole(ctx.query, 'limit', LOGS_PAGE, MAX_LOGS_PAGE),
      );
      return { success: true, data, message: 'Success' };
    },
  },
  { method: 'get', path: '/logs/:id', run: liveStatus },
  { method: 'get', path: '/logs/:id/live', run: liveStatus },
  { method: 'get', path: '/audiences', run: (app, project) => provided(audiences.listAudiences(app, project)) },
  {
    method: 'post',
    path: '/audiences',
    action: 'mail audience create',
    run: (app, project, ctx) => provided(audiences.createAudience(app, project, requireObjectBody(ctx))),
  },
  {
    method: 'delete',
    path: '/audiences/:audienceId',
    action: 'mail audience delete',
    run: (app, project, ctx) => provided(audiences.deleteAudience(app, project, param(ctx, 'audienceId'))),
  },
  {
    method: 'get',
    path: '/audiences/:audienceId/contacts',
    run: (app, project, ctx) => provided(audiences.listContacts(app, project, param(ctx, 'audienceId'))),
  },
  {
    method: 'post',
    path: '/audiences/:audienceId/contacts',
    action: 'mail contact create',
    run: (app, project, ctx) =>
      provided(audiences.createContact(app, project, param(ctx, 'audienceId'), requireObjectBody(ctx))),
  },
  {
    method: 'patch',
    path: '/audiences/:audienceId/contacts/:contactId',
    action: 'mail contact update',
    run: (app, project, ctx) =>
      provided(
        audiences.updateContact(
          app,
          project,
          param(ctx, 'audienceId'),
          param(ctx, 'contactId'),
          requireObjectBody(ctx),
        ),
      ),
  },
  {
    method: 'delete',
    path: '/audiences/:audienceId/contacts/:contactId',
    action: 'mail contact delete',
    run: (app, project, ctx) =>
      provided(audiences.deleteContact(app, project, param(ctx, 'audienceId'), param(ctx, 'contactId'))),
  },
  {
    method: 'post',
    path: '/broadcasts',
    action: 'mail broadcast create',
    run: (app, project, ctx) => provided(broadcasts.createBroadcast(app, project, requireObjectBody(ctx))),
  },
  {
    method: 'post',
    path: '/broadcasts/:id/send',
    action: 'mail broadcast send',
    run: (app, project, ctx) => provided(broadcasts.sendBroadcast(app, project, param(ctx, 'id'), findObjectBody(ctx))),
  },
  { method: 'get', path: '/broadcasts', run: (app, project) => provided(broadcasts.listBroadcasts(app, project)) },
  {
    method: 'get',
    path: '/broadcasts/:id',
    run: (app, project, ctx) => provided(broadcasts.getBroadcast(app, project, param(ctx, 'id'))),
  },
  {
    method: 'delete',
    path: '/broadcasts/:id',
    action: 'mail broadcast delete',
    run: (app, project, ctx) => provided(broadcasts.deleteBroadcast(app, project, param(ctx, 'id'))),
  },
];

async function liveStatus(app: App, project: Project, ctx: Context): Promise<object> {
  return { success: true, data: await readLiveStatus(app, project, param(ctx, 'id')), message: 'Success' };
}

async function provided(call: Promise<unknown>): Promise<object> {
  return { success: true, data: await call, message: 'Success' };
}

function param(ctx: Context, name: string): string {
  return (ctx.params as Record<string, string>)[name]!;
}

function findObjectBody(ctx: Context): Record<string, unknown> {
  const body = (ctx.request as { body?: unknown }).body;
  return body === undefined || body === '' ? {} : requireObjectBody(ctx);
}

async function readSignedEvent(ctx: Context) {
  const header = (name: string): string => ctx.get(`svix-${name}`) || ctx.get(`webhook-${name}`);
  try {
    return {
      body: await rawBody(ctx.req, { limit: MAX_EVENT_BYTES, length: ctx.get('content-length') || null }),
      headers: { id: header('id'), timestamp: header('timestamp'), signature: header('signature') },
      project: typeof ctx.query.project === 'string' ? ctx.query.project : null,
    };
  } catch (error) {
    if ((error as { status?: number }).status === 413) throw tooLarge('BODY_TOO_LARGE', 'The event is too large');
    throw invalid('INVALID_BODY', 'The event could not be read', { cause: error });
  }
}
