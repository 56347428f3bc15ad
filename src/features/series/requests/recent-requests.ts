import type { Context } from 'koa';
import type { App } from '../../../app.js';
import { hexOf } from '../../../platform/ids.js';
import type { Observer } from '../../../http/answer-requests.js';
import { clientNetwork } from '../../../http/requests/client-address.js';
import { matchedRoute } from '../../../http/routes/mount-routes.js';
import type { Caller } from '../../access/caller.js';
import type { ActingOperator } from '../../access/require-operator.js';
import { storeOf } from '../../../platform/database/database.js';
import { isRestoring } from '../../../platform/database/restore-mark.js';

/** Of a process, the newest. */
export const MOST_SEEN = 10_000;
const MAX_PATH_CHARACTERS = 200;
const SLOW_MS = 1_000;
/** Between two looks: an hour of failures must not cost what answers cost. */
const MOST_TO_KEEP = 100;

/** A request as it was answered: no query, no body, and of the address the network. */
export interface SeenRequest {
  atMs: number;
  requestId: string;
  method: string;
  /** The route's pattern; null = no route took it. */
  route: string | null;
  path: string;
  status: number;
  ms: number;
  project: string | null;
  by: 'publishable key' | 'secret key' | 'operator' | 'nobody';
  user: string | null;
  network: string;
}

export interface RequestFilter {
  project?: string | undefined;
  /** In path, route, request id, user or network. */
  q?: string | undefined;
  /** A status, or the first digit of several. */
  status?: number | undefined;
  minMs?: number | undefined;
  limit: number;
}

/** The last requests of a process in a ring: each new one takes the place of the oldest. */
class RecentRequests {
  readonly #ring: SeenRequest[] = [];
  #next = 0;
  #toKeep: SeenRequest[] = [];

  add(request: SeenRequest, isKept: boolean): void {
    this.#ring[this.#next] = request;
    this.#next = (this.#next + 1) % MOST_SEEN;
    if (isKept && this.#toKeep.length < MOST_TO_KEEP) this.#toKeep.push(request);
  }

  /** The newest first. */
  find(filter: RequestFilter): SeenRequest[] {
    const found: SeenRequest[] = [];
    const { length } = this.#ring;
    for (let back = 1; back <= length && found.length < filter.limit; back++) {
      const each = this.#ring[(this.#next - back + length) % length]!;
      if (isLike(each, filter)) found.push(each);
    }
    return found;
  }

  /** The first of those to keep since the last call. */
  takeToKeep(): SeenRequest[] {
    const taken = this.#toKeep;
    this.#toKeep = [];
    return taken;
  }
}

/** True for a request that a filter asks for. */
function isLike(request: SeenRequest, { project, q, status, minMs = 0 }: RequestFilter): boolean {
  if (project !== undefined && request.project !== project) return false;
  if (status !== undefined && request.status !== status && Math.floor(request.status / 100) !== status) return false;
  return request.ms >= minMs && (q === undefined || textOf(request).includes(q.toLowerCase()));
}

const textOf = ({ path, route, requestId, user, network }: SeenRequest): string =>
  `${path} ${route ?? ''} ${requestId} ${user ?? ''} ${network}`.toLowerCase();

const rings = new WeakMap<App['hints'], RecentRequests>();

/** The last requests that this process has answered. */
export function recentRequests(app: Pick<App, 'hints'>): RecentRequests {
  let ring = rings.get(app.hints);
  if (!ring) rings.set(app.hints, (ring = new RecentRequests()));
  return ring;
}

/** Notes each request when its answer is settled. */
export function noteRequests(app: App): Observer {
  const ring = recentRequests(app);
  return (ctx, ms) => {
    const request = describe(ctx, app.clock.now(), ms);
    ring.add(request, isToKeep(ctx, request));
  };
}

/** True for a 5xx and for requests that were slow without being asked to wait. */
function isToKeep(ctx: Context, { status, ms }: SeenRequest): boolean {
  return status >= 500 || (ms >= SLOW_MS && ctx.query.wait === undefined && ctx.response.type !== 'text/event-stream');
}

function describe(ctx: Context, atMs: number, ms: number): SeenRequest {
  const { caller, operator, requestId } = ctx.state as {
    caller?: Caller;
    operator?: ActingOperator;
    requestId: string;
  };
  const params = (ctx as Context & { params?: Record<string, string | undefined> }).params;
  const bearer = caller?.bearer;
  return {
    atMs,
    requestId,
    method: ctx.req.method!,
    route: matchedRoute(ctx) ?? null,
    path: ctx.req.url!.length > MAX_PATH_CHARACTERS ? copyOf(ctx.path) : ctx.path,
    status: ctx.res.statusCode,
    ms: Math.round(ms * 10) / 10,
    project: caller ? hexOf(caller.project._id) : operator && params?.projectId ? copyOf(params.projectId) : null,
    by: caller ? `${caller.key.type} key` : operator ? 'operator' : 'nobody',
    user: bearer && 'userId' in bearer ? bearer.userId : null,
    network: clientNetwork(ctx.ip),
  };
}

/** The beginning of a text by itself: a slice would keep all of an address of 16 kB. */
const copyOf = (text: string): string => Buffer.from(text.slice(0, MAX_PATH_CHARACTERS)).toString();

export const KEPT_DAYS = 7;
export const MOST_KEPT = 10_000;
const DAY_MS = 86_400_000;

interface KeptRequest extends SeenRequest {
  /** Begins with the moment, so that its order is that of time. */
  _id: string;
}

const keptStore = storeOf<KeptRequest>('kept_requests');

/**
 * Stores the failed and slow requests of this process that were noted since the last call, at most a hundred, and
 * removes those that are too old or too many.
 */
export async function storeKeptRequests(app: App): Promise<void> {
  const noted = recentRequests(app).takeToKeep();
  if (noted.length === 0 || (await isRestoring(app.db))) return;
  await keptStore(app).insertMany(noted.map((request) => ({ _id: idOf(request.atMs, request.requestId), ...request })));
  const [oldest] = await keptStore(app).find({}).sort({ _id: -1 }).skip(MOST_KEPT).limit(1).toArray();
  const tooOld = idOf(app.clock.now() - KEPT_DAYS * DAY_MS);
  await keptStore(app).deleteMany({ _id: { $lte: oldest && oldest._id > tooOld ? oldest._id : tooOld } });
}

/** The failed and slow requests of all processes, the newest first. */
export async function findKeptRequests(app: App, filter: RequestFilter): Promise<SeenRequest[]> {
  const found: SeenRequest[] = [];
  const since = idOf(app.clock.now() - KEPT_DAYS * DAY_MS);
  for await (const { _id, ...request } of keptStore(app)
    .find({ _id: { $gt: since } })
    .sort({ _id: -1 })) {
    if (isLike(request, filter)) found.push(request);
    if (found.length >= filter.limit) break;
  }
  return found;
}

function idOf(atMs: number, requestId = ''): string {
  return `${new Date(atMs).toISOString()} ${requestId}`;
}
