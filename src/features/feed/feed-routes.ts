import type { App } from '../../app.js';
import { forbidden, unavailable } from '../../errors.js';
import { clientSignal } from '../../http/requests/client-signal.js';
import { waitAside } from '../../http/requests/limit-in-flight.js';
import { decodePart } from '../../http/routes/mount-routes.js';
import { encoded, naming, parameter, route, type RouteContext, type RouteList } from '../../http/routes/route.js';
import { anyOf, arrayOf, FLAG, ID, MOMENT, object, oneOf, TEXT } from '../../platform/schema/schema.js';
import { READS_DOCUMENTS } from '../access/key-access.js';
import { callerOf, settleKey } from '../access/require-key.js';
import { USERS } from '../collections/users-collection.js';
import { SHOWN_DOCUMENT } from '../documents/reply/document-schema.js';
import { readFeed } from './read-feed.js';

const CHANGE = anyOf(
  object({ type: oneOf('upsert'), id: ID, at: MOMENT, document: SHOWN_DOCUMENT }, 'Upsert'),
  object({ type: oneOf('gone'), id: ID, at: MOMENT }, 'Gone'),
);
const PAGE = object(
  {
    success: { const: true },
    data: object({
      items: arrayOf(CHANGE),
      cursor: { ...TEXT, description: 'For `since` of the next request.' },
      more: { ...FLAG, description: 'There is more at once; `false`: the client has what a list shows.' },
    }),
    message: TEXT,
  },
  'ChangePage',
);

const readChangesRoute = route({
  method: 'GET',
  path: '/api/data/:collectionName/changes',
  id: 'readChanges',
  summary: 'Follow the changes of a collection',
  description:
    'Shows what a list with the same key, user and filter shows, and then how that changes: without `since` all documents in pages, with the `cursor` of the last answer what has changed since. `gone` names a document that was trashed or removed or does not meet filter or rules any more. Nothing is lost while a client is away; a document may be told more than once. Takes the filters of lists.',
  access: READS_DOCUMENTS,
  ownQuery: {
    since: parameter('The `cursor` of an earlier answer; `now` = only what comes; left out = from the beginning', TEXT),
    limit: parameter('Most changes in the answer', { type: 'integer', minimum: 1, maximum: 1000, default: 200 }),
    wait: parameter('Seconds to wait for a change when there is none', {
      type: 'integer',
      minimum: 0,
      maximum: 25,
      default: 0,
    }),
    fields: parameter('Only these fields, comma-separated; `_id` besides', TEXT),
    meta: parameter('`false` leaves out isDeleted, deletedAt, createdAt, updatedAt', {
      type: 'boolean',
      default: true,
    }),
    filters: {
      ...parameter('`field=value`, `field_gt=…` and the like, as in lists', {
        type: 'object',
        additionalProperties: { type: 'string' },
      }),
      isOpen: true,
    },
  },
  answers: encoded(PAGE, 'Changes'),
  refuses: {
    400: [
      'INVALID_QUERY',
      'INVALID_CURSOR',
      'QUERY_TIMEOUT',
      'TOO_MANY_PATTERNS',
      'PATTERNS_TOO_LONG',
      'PATTERN_TOO_LARGE',
    ],
    409: ['CHANGES_OFF'],
    410: ['CURSOR_EXPIRED'],
    503: ['BUSY'],
  },
  async handle({ app, ctx, params }) {
    const reply = await readFeed(app, params.collectionName, ctx.querystring, {
      signal: clientSignal(ctx),
      async settle() {
        ctx.state.caller = undefined;
        await settleKey(app, ctx);
        return callerOf(ctx);
      },
      aside: (work) => waitForTurn(app, ctx, work),
    });
    return reply as string;
  },
});

/** How many requests of an application wait. */
const waiting = new WeakMap<App['hints'], number>();

async function waitForTurn(app: App, ctx: RouteContext, work: () => Promise<void>): Promise<void> {
  const count = waiting.get(app.hints) ?? 0;
  if (count >= app.config.streams) {
    throw unavailable('BUSY', 'Too many wait for changes just now: ask without wait, or later', {
      retryAfterSeconds: 5,
    });
  }
  waiting.set(app.hints, count + 1);
  try {
    await waitAside(ctx, work);
  } finally {
    waiting.set(app.hints, waiting.get(app.hints)! - 1);
  }
}

/** As in `/api/data`; but the secret key may follow `users`, as it may have webhooks tell of them. */
async function admit(app: App, ctx: RouteContext): Promise<void> {
  await settleKey(app, ctx);
  const name = decodePart(ctx.path.split('/')[3] ?? '');
  if (!name.toLowerCase().startsWith(USERS)) return;
  if (name === USERS && callerOf(ctx).key.type === 'secret') return;
  throw forbidden('USERS_BLOCKED', 'The users collection is reached through /api/userAuth only');
}

/** What clients follow instead of asking again and again (changes.md 1). */
export const FEED_ROUTES: RouteList = {
  prefix: '/api/data/:collectionName/changes',
  tag: 'Documents',
  params: { collectionName: naming('Name of a registered collection', 'COLLECTION_NOT_FOUND') },
  guard: (app) => (ctx) => admit(app, ctx),
  routes: [readChangesRoute],
};
