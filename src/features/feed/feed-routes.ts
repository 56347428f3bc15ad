import type { Context } from 'koa';
import type { App } from '../../app.js';
import { unauthenticated, tooLarge } from '../../errors.js';
import type { Bearer, Caller, HeldToken } from '../access/caller.js';
import { judgeHeldToken } from '../access/read-bearer.js';
import { callerFrom, findLiveKey, requireAdmittedOrigin, callerOf, authenticateKey } from '../access/require-key.js';
import { oneTimeTokens } from '../quota/one-time-token.js';
import { clientNetwork } from '../../http/requests/client-address.js';
import { clientSignal } from '../../http/requests/client-signal.js';
import { leaveInFlight, waitAside } from '../../http/admission/admission.js';
import { tenantOf } from '../../http/admission/tenants.js';
import type { StreamReply } from '../../http/replies/reply.js';
import { decodePart } from '../../http/routes/mount-routes.js';
import {
  created,
  either,
  encoded,
  EVENT_STREAM_TYPE,
  eventStream,
  naming,
  parameter,
  route,
  wholeNumberParameter,
  type RouteContext,
  type RouteList,
} from '../../http/routes/route.js';
import {
  anyOf,
  arrayOf,
  FLAG,
  boolean,
  ID,
  integer,
  literal,
  mapOf,
  MOMENT,
  object,
  OBJECT,
  oneOf,
  text,
  TEXT,
} from '../../platform/schema/schema.js';
import { countAsMore } from '../access/limit-requests.js';
import { ANY_KEY, READS_DOCUMENTS } from '../access/key-access.js';
import { listUnstreamed } from '../documents/query/filter-operators.js';
import { writeFilters } from '../documents/query/parse-list-query.js';
import { DEFAULT_SORT } from '../documents/query/parse-sort.js';
import { badQuery, findSingle, readQueryText } from '../documents/reply/query-text.js';
import { requireFollowable, namingSubscription, openStream, type StreamRequest } from './streams/open-stream.js';
import { SHOWN_DOCUMENT } from '../documents/reply/present-document.js';
import { DEFAULT_CHANGES, MAX_CHANGES, MAX_WAIT_S } from './feed-query.js';
import { readFeed } from './read-feed.js';
import { streamHub, type Place } from './streams/stream-hub.js';

/** How long a ticket is good for. */
const TICKET_MS = 60_000;

/**
 * The right to open one stream, for a browser's EventSource, which sends no headers of its own. It holds neither key
 * nor token, only what both can be judged by when it is used.
 */
const STREAM_TICKETS = oneTimeTokens<{ keyHash: string; user: { id: string; token: HeldToken } | null }>(
  'stream',
  TICKET_MS,
);

/** A new ticket with the rights of the caller. */
function giveTicket(app: App, { project, key, bearer }: Caller): Promise<string> {
  const user = bearer.state === 'user' && bearer.token ? { id: bearer.userId, token: bearer.token } : null;
  return STREAM_TICKETS.give(app, project, { keyHash: key.hash, user });
}

/**
 * Settles whose request this is by a ticket, which is used up by it. 401 TICKET_INVALID for one that is unknown, used
 * or too old, or whose key or token is not good any more; 403 for an origin off the allowlist.
 */
async function authenticateTicket(app: App, ctx: Context, ticket: string): Promise<void> {
  const found = await STREAM_TICKETS.take(app, null, ticket);
  const owner = found && (await findLiveKey(app, found.held.keyHash));
  if (!owner) throw badTicket();
  requireAdmittedOrigin(ctx, owner);
  const { user } = found.held;
  if (user && (await judgeHeldToken(app, owner.project, user.id, user.token)) !== null) throw badTicket();
  const bearer: Bearer = user
    ? { state: 'user', userId: user.id, session: user.token.id.session, token: user.token }
    : { state: 'absent' };
  ctx.state.caller = callerFrom(ctx, owner, bearer);
}

function badTicket(): Error {
  return unauthenticated('TICKET_INVALID', 'The ticket is unknown, used or expired. Request a new one');
}

const CHANGE = anyOf(
  object({ type: oneOf('upsert'), id: ID, at: MOMENT, document: SHOWN_DOCUMENT }, 'Upsert'),
  object({ type: oneOf('gone'), id: ID, at: MOMENT }, 'Gone'),
);
const PAGE = object(
  {
    success: literal(true),
    data: object({
      items: arrayOf(CHANGE),
      cursor: { ...TEXT, description: 'Send it as `since` in the next request.' },
      more: {
        ...FLAG,
        description:
          'Whether more changes are available now. With `false`, the client has everything that a list returns.',
      },
      'reset?': { ...FLAG, description: 'With `sort`: discard your copy, `items` are all documents.' },
    }),
    message: TEXT,
  },
  'ChangePage',
);

const EVENTS = eventStream(
  {
    ...TEXT,
    description:
      '`change` with `n`, `type`, `id`, `at`, `document` and `cursor`. `ready` with `n` and `cursor`: the client has everything that a list returns; sent again after each batch. `reset` with `n`: discard your copy, all documents follow. `end` with `code` and `retryAfterMs` is the last event. `n` is the position of the subscription in the request. A comment is sent every 25 seconds.',
  },
  'Changes',
);
/** Of one subscription; the events are told once, since the document of a project names this for each collection. */
const EVENTS_OF_ONE = eventStream({ ...TEXT, description: 'The events of `POST /api/realtime`; `n` is 0.' }, 'Changes');
const STREAM_ERRORS = { 403: ['QUOTA_EXCEEDED'], 429: ['TOO_MANY_STREAMS'], 503: ['BUSY'] };

function wantsStream(ctx: RouteContext): boolean {
  return ctx.get('accept').includes(EVENT_STREAM_TYPE);
}

/** A stream with one subscription, for clients that resume by themselves. */
function openOne(app: App, ctx: RouteContext, collection: string): Promise<StreamReply> {
  const parts = ctx.querystring.split('&');
  const own = (part: string): boolean => [...readQueryText(part).keys()].some((name) => OWN_OF_STREAM.has(name));
  const lastId = ctx.get('last-event-id');
  const since = lastId === '' ? findSingle(readQueryText(ctx.querystring), 'since') : lastId;
  const query = parts.filter((part) => !own(part)).join('&');
  return openFor(app, ctx, { subscriptions: [{ collection, query, since: since || null }], hasIds: true });
}

const OWN_OF_STREAM: ReadonlySet<string> = new Set(['since', 'ticket']);

async function openFor(
  app: App,
  ctx: RouteContext,
  asked: Pick<StreamRequest, 'subscriptions' | 'hasIds'>,
): Promise<StreamReply> {
  const origin = ctx.get('origin') || null;
  const address = clientNetwork(ctx.ip);
  const opened = await openStream(app, { caller: callerOf(ctx), address, origin, ...asked });
  leaveInFlight(ctx);
  return { type: EVENT_STREAM_TYPE, begin: (res) => opened.begin(res), giveUp: () => opened.giveUp() };
}

const MAX_REQUEST_CHARACTERS = 64 * 1024;
const SUBSCRIPTION = object(
  {
    collection: text({ maxLength: 64 }),
    'filter?': {
      ...anyOf(text({ maxLength: 8192 }), OBJECT),
      description: 'An object, `{"status":"open","views_gt":3}`, or the query string of a list.',
    },
    'fields?': arrayOf(TEXT, { maxItems: 100 }),
    'populate?': {
      ...arrayOf(TEXT, { maxItems: 2 }),
      description: 'Ref fields, as in lists. Their documents are followed too.',
    },
    'limit?': integer({
      minimum: 1,
      maximum: MAX_CHANGES,
      description: 'Only the first documents in the order of `sort`. One that is pushed out is `gone`.',
    }),
    'sort?': text({ maxLength: 1024, description: 'As in lists, with `limit`. Default: `-createdAt`.' }),
    'since?': text({ maxLength: 4096, description: 'A cursor, or `now`. Default: from the beginning.' }),
  },
  'Subscription',
);

function requireFilterOnly(filter: string): void {
  for (const name of readQueryText(filter).keys()) {
    if (NOT_FILTERS.has(name)) throw badQuery(`${name} is no filter: it stands beside it`);
  }
}

const NOT_FILTERS: ReadonlySet<string> = new Set(['since', 'fields', 'populate', 'limit', 'sort']);

/** The rights of a ticket are found out when it is used. */
const ASKS_FOR_TICKET = { ...READS_DOCUMENTS, note: ANY_KEY.note, errors: ANY_KEY.errors };

/** As in `/api/data`; a stream may be opened by a ticket instead. */
async function admit(app: App, ctx: RouteContext): Promise<void> {
  const ticket = wantsStream(ctx) ? ticketIn(ctx) : null;
  if (ticket === null) await authenticateKey(app, ctx);
  else await authenticateTicket(app, ctx, ticket);
  requireFollowable(callerOf(ctx), decodePart(ctx.path.split('/')[3] ?? ''));
}

function ticketIn({ querystring }: RouteContext): string | null {
  const [ticket, ...others] = readQueryText(querystring).get('ticket') ?? [];
  return others.length === 0 ? (ticket ?? null) : null;
}

/** Routes of the feed, which clients follow instead of asking again and again (changes.md 1). */
export const FEED_ROUTES: RouteList = {
  prefix: '/api/data/:collectionName/changes',
  tag: 'Documents',
  rate: 'plain',
  keyIn: 'header',
  params: { collectionName: naming('Name of a registered collection', 'COLLECTION_NOT_FOUND') },
  guard: (app) => (ctx) => admit(app, ctx),
  routes: [
    route('GET /api/data/:collectionName/changes', {
      id: 'readChanges',
      summary: 'Get changes of a collection',
      description:
        'Returns the documents of a list with the same key, user and filter, then their changes: without `since`, all documents in pages; with the `cursor` of the last response, changes since. `gone` means that a document was deleted or no longer matches the filter or rules. No change is lost while a client is away; a document may be sent more than once. Takes the filters of lists. With `Accept: text/event-stream` the response is a stream, as of `POST /api/realtime`. The `id` of each event is its cursor, with which an `EventSource` resumes.',
      access: READS_DOCUMENTS,
      ownQuery: {
        since: parameter(
          'The `cursor` of an earlier response, or `now` for future changes only. Default: from the beginning',
          TEXT,
        ),
        ticket: parameter('For streams of an `EventSource`, which cannot send headers. Works once', TEXT),
        limit: wholeNumberParameter('Most changes in the answer; with `sort`, of documents', DEFAULT_CHANGES, {
          max: MAX_CHANGES,
        }),
        populate: parameter('Up to 2 Ref fields, as in lists. Their documents are followed too', TEXT),
        sort: parameter('Only the first `limit` documents, in this order, as in lists', TEXT),
        wait: parameter(
          'Seconds to wait for a change if there is none',
          integer({ minimum: 0, maximum: MAX_WAIT_S, default: 0 }),
        ),
        fields: parameter('Only these fields, comma-separated, and `_id`', TEXT),
        meta: parameter('`false` omits isDeleted, deletedAt, createdAt and updatedAt', boolean({ default: true })),
        filters: {
          ...parameter('Filters as in lists: `field=value`, `field_gt=…`', mapOf(TEXT)),
          isOpen: true,
        },
      },
      headers: { 'last-event-id': parameter('For streams, instead of `since`', TEXT) },
      answers: either(encoded(PAGE, 'Changes'), EVENTS_OF_ONE),
      errors: {
        400: [
          'INVALID_QUERY',
          'INVALID_CURSOR',
          'QUERY_TIMEOUT',
          'TOO_MANY_PATTERNS',
          'PATTERNS_TOO_LONG',
          'PATTERN_TOO_LARGE',
        ],
        401: ['TICKET_INVALID'],
        403: STREAM_ERRORS[403],
        409: ['CHANGES_OFF'],
        429: STREAM_ERRORS[429],
        410: ['CURSOR_EXPIRED'],
        503: ['BUSY'],
      },
      async handle({ app, ctx, params }) {
        if (wantsStream(ctx)) return openOne(app, ctx, params.collectionName);
        // Kept for all of a wait: given back between two looks, it would go to others, and who waits would be refused.
        let place: Place | undefined;
        try {
          return await readFeed(app, params.collectionName, ctx.querystring, {
            signal: clientSignal(ctx),
            async settle() {
              ctx.state.caller = undefined;
              await authenticateKey(app, ctx);
              return callerOf(ctx);
            },
            aside(work) {
              place ??= streamHub(app).takePoll(tenantOf(ctx));
              return waitAside(app, ctx, work);
            },
          });
        } finally {
          place?.release();
        }
      },
    }),
  ],
};

/** Streams of several subscriptions. */
export const STREAM_ROUTES: RouteList = {
  prefix: '/api/realtime',
  tag: 'Documents',
  rate: 'plain',
  keyIn: 'header',
  guard: (app) => (ctx) => authenticateKey(app, ctx),
  routes: [
    route('POST /api/realtime', {
      id: 'openStream',
      summary: 'Subscribe to several collections in one stream',
      description: `Each subscription returns the documents of a list with the same key, user and filter, then their changes. No change is lost while a client is away: resume with the last cursors, at any process. To change subscriptions, open another stream. The stream ends when the access token expires, the key is revoked or the server stops; \`retryAfterMs\` says when to reconnect. A filter has at most 20 conditions, lists of 100 values, and no ${listUnstreamed()}.`,
      access: READS_DOCUMENTS,
      body: object({ subscriptions: arrayOf(SUBSCRIPTION, { minItems: 1, maxItems: 50 }) }),
      example: { subscriptions: [{ collection: 'posts', filter: { status: 'open' } }] },
      answers: EVENTS,
      errors: {
        400: ['INVALID_QUERY', 'INVALID_CURSOR'],
        403: STREAM_ERRORS[403],
        404: ['COLLECTION_NOT_FOUND'],
        409: ['CHANGES_OFF'],
        429: STREAM_ERRORS[429],
        503: STREAM_ERRORS[503],
      },
      async handle({ app, ctx, body }) {
        if (JSON.stringify(body).length > MAX_REQUEST_CHARACTERS) {
          throw tooLarge(
            'BODY_TOO_LARGE',
            `The subscriptions of a stream may have at most ${MAX_REQUEST_CHARACTERS} bytes`,
          );
        }
        const subscriptions = body.subscriptions.map(({ collection, filter: given = '', ...shown }, n) => {
          const { fields, populate, limit, sort, since } = shown;
          let filter: string;
          try {
            filter = typeof given === 'string' ? given : writeFilters(given);
            requireFilterOnly(filter);
          } catch (error) {
            throw namingSubscription(n, error);
          }
          const query = [
            filter,
            fields ? `fields=${fields.map(encodeURIComponent).join()}` : '',
            populate ? `populate=${populate.map(encodeURIComponent).join()}` : '',
            limit === undefined ? '' : `limit=${limit}`,
            limit === undefined && sort === undefined ? '' : `sort=${encodeURIComponent(sort ?? DEFAULT_SORT)}`,
          ];
          return { collection, query: query.filter(Boolean).join('&'), since: since || null };
        });
        // Each that begins with all there is reads as much as a list.
        const lists = subscriptions.filter(({ since }) => since === null).length;
        if (lists > 1) await countAsMore(app, ctx, lists - 1);
        return openFor(app, ctx, { subscriptions, hasIds: false });
      },
    }),
    route('POST /api/realtime/ticket', {
      id: 'createStreamTicket',
      summary: 'Create a ticket for an EventSource',
      description:
        'A browser’s `EventSource` cannot send headers. It opens `/api/data/{collectionName}/changes?ticket=…` with the rights of the caller. A ticket works once.',
      access: ASKS_FOR_TICKET,
      answers: created(object({ ticket: TEXT, expiresIn: text({ examples: ['60s'] }) }), 'Ticket created'),
      errors: { 403: ['QUOTA_EXCEEDED'] },
      async handle({ app, caller }) {
        const ticket = await giveTicket(app, caller);
        return { ticket, expiresIn: `${TICKET_MS / 1000}s` };
      },
    }),
  ],
};
