import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { created, listOf, naming, ok, route, type RouteList, wholeList } from '../../http/routes/route.js';
import {
  ANYTHING,
  arrayOf,
  ID,
  integer,
  MOMENT,
  object,
  OBJECT,
  oneOf,
  orNull,
  text,
  TEXT,
} from '../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import type { Project } from '../projects/project.js';
import { presentDelivery } from '../webhooks/present-webhook.js';
import { DELIVERY } from '../webhooks/webhook-routes.js';
import { listCalls } from './call-log.js';
import { addHook, MAX_TIMEOUT_MS, MIN_TIMEOUT_MS, presentHook, removeHook, testHook } from './change-hooks.js';
import { findHook, noHook } from './hook.js';

/** A handler in the project's folder: which folder that is, the command line alone says. */
export const OWN_FILE = text({
  pattern: '^[A-Za-z0-9_.-]{1,100}\\.m?js(#.{1,200})?$',
  description: '`<file>#<handler>`, in the project’s folder of own code.',
});
export const TARGET_FIELDS = {
  url: { ...orNull(TEXT), description: 'Whole for owners; for viewers without its path and query.' },
  run: orNull(TEXT),
};
export const BAD_TARGET = ['INVALID_HOOK', 'INVALID_URL', 'PRIVATE_ADDRESS', 'PORT_NOT_ALLOWED'];

export const SECRET = { ...orNull(text({ pattern: '^whsec_' })), description: 'Signs the calls; null for a file.' };

const TIMEOUT = integer({ minimum: MIN_TIMEOUT_MS, maximum: MAX_TIMEOUT_MS });
const ON_FAILURE = oneOf('refuse', 'allow');
const HOOK_FIELDS = {
  ...{ id: ID, event: TEXT, ...TARGET_FIELDS, onFailure: ON_FAILURE, timeoutMs: TIMEOUT, createdAt: MOMENT },
};
const HOOK = object(HOOK_FIELDS, 'Hook');

/** The result of a test call; `error` is null if it succeeded. */
export const TRIED = object({ answer: ANYTHING, error: orNull(TEXT) }, 'TriedHandler');

export const CALLS = object({
  items: arrayOf(DELIVERY),
  lines: { ...arrayOf(TEXT), description: 'What the project’s files have printed last, in the process that answers.' },
});
const SHOWN_CALLS = 20;

/** What is known of the calls of a hook or schedule. */
export async function presentCalls(app: App, { _id }: Project, ownerId: ObjectId) {
  const items = (await listCalls(app, ownerId, SHOWN_CALLS)).map(presentDelivery);
  return { items, lines: [...app.ownCode.lines(_id.toHexString())] };
}

/** Hooks (hooks.md 2), for operators. */
export const HOOK_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/hooks',
  tag: 'Project own code',
  rate: 'operator',
  about: 'Your code, called before something happens, or again and again by a cron expression in a time zone.',
  params: { event: naming('Event of the hook', 'HOOK_NOT_FOUND') },
  routes: [
    route('GET /api/projects/:projectId/hooks', {
      id: 'listHooks',
      command: 'hook list',
      summary: 'List hooks',
      access: PROJECT_OPERATOR,
      answers: ok(listOf(HOOK), 'Hooks'),
      handle: ({ app, project, operator }) =>
        wholeList((project.hooks ?? []).map((hook) => presentHook(app, project, hook, operator.role === 'owner'))),
    }),
    route('POST /api/projects/:projectId/hooks', {
      id: 'addHook',
      summary: 'Add a hook',
      access: projectOwner('hook add', { asksPassword: true }),
      body: object(
        { event: TEXT, 'url?': TEXT, 'run?': OWN_FILE, 'onFailure?': ON_FAILURE, 'timeoutMs?': TIMEOUT },
        'NewHook',
      ),
      example: { event: 'orders.create', url: 'https://shop.example/orders' },
      answers: created(
        object({ ...HOOK_FIELDS, secret: SECRET }, 'CreatedHook'),
        'Hook added. The secret is shown only now.',
      ),
      errors: {
        400: ['INVALID_EVENTS', 'HOOK_LIMIT', ...BAD_TARGET],
        409: ['HOOK_EXISTS'],
      },
      async handle({ app, project, body }) {
        const { hook, secret } = await addHook(app, project, body);
        return { ...presentHook(app, project, hook), secret };
      },
    }),
    route('DELETE /api/projects/:projectId/hooks/:event', {
      id: 'removeHook',
      summary: 'Remove a hook with its log',
      access: projectOwner('hook remove'),
      answers: ok(object({ id: ID }), 'Hook removed'),
      async handle({ app, project, params }) {
        return { id: (await removeHook(app, project, params.event)).id.toHexString() };
      },
    }),
    route('POST /api/projects/:projectId/hooks/:event/test', {
      id: 'testHook',
      summary: 'Call a hook once with a document that is not stored',
      access: projectOwner('hook test'),
      body: object({ 'document?': OBJECT }),
      example: { document: { quantity: 2 } },
      answers: ok(TRIED, 'Tested'),
      handle: ({ app, project, params, body }) => testHook(app, project, params.event, body.document ?? {}),
    }),
    route('GET /api/projects/:projectId/hooks/:event/calls', {
      id: 'listHookCalls',
      summary: 'List the last calls of a hook',
      access: PROJECT_OPERATOR,
      answers: ok(CALLS, 'Calls'),
      handle({ app, project, params: { event } }) {
        const hook = findHook(project, event);
        if (!hook) throw noHook(event);
        return presentCalls(app, project, hook.id);
      },
    }),
  ],
};
