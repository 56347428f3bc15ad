import type { Context } from 'koa';
import type { App } from '../../../app.js';
import type { Observer } from '../../../http/answer-requests.js';
import { clientNetwork } from '../../../http/requests/client-address.js';
import { matchedRoute } from '../../../http/routes/mount-routes.js';
import type { Caller } from '../../access/caller.js';
import type { ActingOperator } from '../../access/require-operator.js';

/** Of a process, the newest. */
export const MOST_SEEN = 10_000;
const MAX_PATH_CHARACTERS = 200;

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

  add(request: SeenRequest): void {
    this.#ring[this.#next] = request;
    this.#next = (this.#next + 1) % MOST_SEEN;
  }

  /** The newest first. */
  find({ project, q, status, minMs = 0, limit }: RequestFilter): SeenRequest[] {
    const found: SeenRequest[] = [];
    const wanted = q?.toLowerCase();
    const { length } = this.#ring;
    for (let back = 1; back <= length && found.length < limit; back++) {
      const each = this.#ring[(this.#next - back + length) % length]!;
      if (project !== undefined && each.project !== project) continue;
      if (status !== undefined && each.status !== status && Math.floor(each.status / 100) !== status) continue;
      if (each.ms < minMs || (wanted !== undefined && !textOf(each).includes(wanted))) continue;
      found.push(each);
    }
    return found;
  }
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
  return (ctx, ms) => ring.add(describe(ctx, app.clock.now(), ms));
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
    path: copyOf(ctx.path),
    status: ctx.res.statusCode,
    ms: Math.round(ms * 10) / 10,
    project: caller?.project._id.toHexString() ?? (operator && params?.projectId ? copyOf(params.projectId) : null),
    by: caller ? `${caller.key.type} key` : operator ? 'operator' : 'nobody',
    user: bearer && 'userId' in bearer ? bearer.userId : null,
    network: clientNetwork(ctx.ip),
  };
}

/** The beginning of a text by itself: a slice would keep all of an address of 16 kB. */
const copyOf = (text: string): string => Buffer.from(text.slice(0, MAX_PATH_CHARACTERS)).toString();
