import type { Context } from 'koa';
import type { App } from '../../app.js';
import { abandoned } from '../../errors.js';
import type { FairLimiter, Tenant } from '../../fair-limiter.js';
import { observeTurns, turn, waitingForTurns } from '../../scheduler.js';
import { clientSignal } from '../requests/client-signal.js';
import { countValues } from '../requests/count-values.js';
import { parseJson, requireFewValues, type BodyLimit } from '../requests/read-body.js';
import { declaredLength, explainUnread, JSON_TYPES, readBytes } from '../requests/read-bytes.js';
import { tenantOf } from './tenants.js';
import { type LoadRejection, openStage, rejectionReport } from './rejections.js';
import { estimateBody, estimateMemory, estimateQuery, estimateScan, TurnRatios } from './weights.js';
import { setFlagsFromString } from 'node:v8';

/** Bodies that arrive, for each request that may be under way. */
const ARRIVING_TIMES = 4;
const WAIT_FOR_FLIGHT_MS = 1_000;
const WAIT_TO_ARRIVE_MS = 10_000;
/** Time that a body has, besides a second for each of these bytes. */
const ARRIVAL_MS = 10_000;
const ARRIVAL_BYTES_PER_SECOND = 16 * 1024;

/** Work of less is bounded by the number of requests under way. */
const SMALL_WORK_BYTES = 32 * 1024;
/** Characters of a query that need no turn of their own. */
const SHORT_QUERY = 500;
/** Work of more leaves so much garbage that V8's own rule lets it gather too long. */
const LARGE_WORK_BYTES = 1024 ** 2;

type AdmissionApp = Pick<App, 'log' | 'metrics'> & { config: Pick<App['config'], 'maxInFlight' | 'bodyBudgetBytes'> };

/** What requests hold of the process, stage by stage (decision 51): bodies that arrive, their bytes, requests. */
export class Admission {
  /** Requests whose body is there and whose reply is not completely sent. */
  readonly inFlight: FairLimiter;
  /** Requests whose body is not there yet. */
  readonly arriving: FairLimiter;
  /** The bytes of their bodies, until the reply is sent. */
  readonly bytes: FairLimiter;
  /** Memory of the work on bodies that are there, until the reply is sent. */
  readonly work: FairLimiter;

  /** Notes a refusal because of load in log and metrics. */
  readonly report: (refusal: LoadRejection) => void;

  constructor(app: AdmissionApp, waitMs = WAIT_FOR_FLIGHT_MS) {
    const { maxInFlight, bodyBudgetBytes } = app.config;
    this.report = rejectionReport(app);
    const room = (stage: string, unit: string, most: number, maxWaitMs: number): FairLimiter =>
      openStage({ stage, unit, most, maxWaitMs, maxWaiting: maxInFlight, onRejection: this.report });
    this.inFlight = room('under way', 'requests', maxInFlight, waitMs);
    this.arriving = room('arriving', 'requests', maxInFlight * ARRIVING_TIMES, waitMs);
    this.bytes = room('arriving', 'bytes', bodyBudgetBytes, WAIT_TO_ARRIVE_MS);
    this.work = room('worked on', 'bytes', bodyBudgetBytes, WAIT_TO_ARRIVE_MS);
    const { metrics } = app;
    const gauge = (name: string, help: string, read: () => number): void =>
      metrics.gauge(name, help, () => [{ value: read() }]);
    gauge('http_requests_in_flight', 'Requests under way', () => this.inFlight.held);
    gauge('http_requests_arriving', 'Requests whose body is not there yet', () => this.arriving.held);
    gauge('http_body_bytes_held', 'Bytes of bodies of requests under way', () => this.bytes.held);
    gauge(
      'http_body_work_bytes',
      'Memory that the work on bodies of requests is estimated to take',
      () => this.work.held,
    );
    gauge('turns_waiting', 'Pieces of work that wait for a turn of the event loop', waitingForTurns);
    const ratios = new TurnRatios();
    observeTurns((kind, estimated, real) => ratios.note(kind, real / estimated));
    metrics.gauge('turn_ratio', 'Turns by how long they took, as a part of what was estimated', () => ratios.counts());
  }

  /**
   * Counts a request among those under way until its reply is sent, when there is room: 503 OVERLOADED otherwise. One
   * with a long query waits for a turn that has time for it.
   */
  begin(ctx: Context): Promise<void> | null {
    const waits = permitsOf(ctx).hold(this.inFlight, 1);
    const { length } = ctx.querystring;
    if (length <= SHORT_QUERY) return waits;
    const takeTurn = async (): Promise<void> => turn(estimateQuery(length), tenantOf(ctx), 'query');
    return waits ? waits.then(takeTurn) : takeTurn();
  }

  /** Counts a request that streams its body among those that arrive, until its reply is sent. */
  stream(ctx: Context): Promise<void> | null {
    return permitsOf(ctx).hold(this.arriving, 1);
  }

  /**
   * Reads a body when there is room for it, then counts the request among those under way. 503 OVERLOADED before
   * anything is read, 408 REQUEST_TIMEOUT for one that is too slow, 413 BODY_TOO_LARGE, 400 `malformed` for one that
   * is cut short.
   */
  read(ctx: Context, limit: number, malformed: string): Promise<Buffer> {
    return this.#read(ctx, limit, Boolean(ctx.is(JSON_TYPES))).catch((error: unknown) => {
      throw explainUnread(error, limit, malformed);
    });
  }

  #read(ctx: Context, limit: number, isJson: boolean): Promise<Buffer> {
    const permits = permitsOf(ctx);
    const length = ctx.req.headers['content-encoding'] === undefined ? declaredLength(ctx.req) : null;
    const expected = Math.min(length ?? limit, limit);
    const ms = ARRIVAL_MS + Math.ceil(expected / ARRIVAL_BYTES_PER_SECOND) * 1000;
    const askRoom = (): Promise<void> | null => permits.hold(this.bytes, expected);
    const begin = (): Promise<Buffer> => readBytes(ctx, { limit, length, ms, isJson });
    const place = permits.hold(this.arriving, 1);
    const room = place ? place.then(askRoom) : askRoom();
    return (room ? room.then(begin) : begin()).then((body) => {
      permits.giveBack(this.arriving);
      const started = permits.hold(this.inFlight, 1);
      return started ? started.then(() => body) : body;
    });
  }

  /** Reads a JSON body, and waits for a turn that has time for all the work on it; `kind` names it in metrics. */
  readJson(ctx: Context, limit: BodyLimit, kind: string): Promise<unknown> {
    return this.#read(ctx, limit.bytes, true).then(
      (body) => {
        const scan = turn(estimateScan(body.length), tenantOf(ctx));
        const waits = scan
          ? scan.then(() => this.#takeTurn(ctx, body, limit, kind))
          : this.#takeTurn(ctx, body, limit, kind);
        return waits ? waits.then(() => parseJson(body)) : parseJson(body);
      },
      (error: unknown) => {
        throw explainUnread(error, limit.bytes, 'INVALID_JSON');
      },
    );
  }

  /** Counts the work on a body, and waits for its room and its turn. A promise only when it takes time. */
  #takeTurn(ctx: Context, body: Buffer, limit: BodyLimit, kind: string): Promise<void> | null {
    const values = countValues(body);
    requireFewValues(values, limit);
    const memory = estimateMemory(body.length, values);
    if (memory > LARGE_WORK_BYTES) collectSooner();
    const room = memory > SMALL_WORK_BYTES ? permitsOf(ctx).hold(this.work, memory) : null;
    const ms = estimateBody(body.length, values) + estimateQuery(ctx.querystring.length);
    const begin = (): Promise<void> | null => {
      const pause = turn(ms, tenantOf(ctx), kind);
      if (!pause) return null;
      return pause.then(() => {
        if (ctx.res.destroyed) throw abandoned();
      });
    };
    return room ? room.then(() => begin() ?? undefined) : begin();
  }
}

/** What a request holds of the rooms, until its reply is sent or it has left them. */
class RequestPermits {
  readonly #held: { readonly room: FairLimiter; readonly amount: number }[] = [];
  #isOver = false;

  constructor(
    private readonly ctx: Context,
    private readonly tenant: Tenant,
  ) {
    ctx.res.on('close', this.#end);
  }

  hold(room: FairLimiter, amount: number): Promise<void> | null {
    const wanted = room.within(this.tenant, amount);
    if (!room.tryTake(this.tenant, wanted)) {
      return room.take(this.tenant, wanted, clientSignal(this.ctx)).then(() => this.#note(room, wanted));
    }
    this.#note(room, wanted);
    return null;
  }

  /** Takes room whether or not there is any. */
  add(room: FairLimiter, amount: number): void {
    if (this.#isOver) return;
    room.add(this.tenant, amount);
    this.#held.push({ room, amount });
  }

  giveBack(room: FairLimiter): void {
    const at = this.#held.findIndex((held) => held.room === room);
    if (at < 0) return;
    const { amount } = this.#held[at]!;
    this.#held.splice(at, 1);
    room.giveBack(this.tenant, amount);
  }

  /** Holds nothing any more, and needs no word of the end. */
  leave(): void {
    this.#end();
    this.ctx.res.off('close', this.#end);
  }

  #note(room: FairLimiter, amount: number): void {
    this.#held.push({ room, amount });
    if (this.#isOver || this.ctx.res.destroyed) this.giveBack(room);
  }

  readonly #end = (): void => {
    this.#isOver = true;
    for (let held = this.#held.pop(); held; held = this.#held.pop()) held.room.giveBack(this.tenant, held.amount);
  };
}

const PERMITS = Symbol('permits');
type WithPermits = Context & { [PERMITS]?: RequestPermits };

function permitsOf(ctx: Context): RequestPermits {
  return ((ctx as WithPermits)[PERMITS] ??= new RequestPermits(ctx, tenantOf(ctx)));
}

const known = new WeakMap<App['hints'], Admission>();

/** The admission of an application. */
export function admission(app: App): Admission {
  let found = known.get(app.hints);
  if (!found) known.set(app.hints, (found = new Admission(app)));
  return found;
}

/**
 * Runs `work` without counting the request among those under way: it holds nothing but a connection during that
 * time.
 */
export async function waitAside<T>(app: App, ctx: Context, work: () => Promise<T>): Promise<T> {
  const { inFlight } = admission(app);
  const permits = permitsOf(ctx);
  permits.giveBack(inFlight);
  try {
    return await work();
  } finally {
    permits.add(inFlight, 1);
  }
}

/** The request counts no longer, however long its reply goes on. */
export function leaveInFlight(ctx: Context): void {
  (ctx as WithPermits)[PERMITS]?.leave();
}

let isAsked = false;

/**
 * From now on V8 collects when the old objects are 1.4 times of what lived at the last collection (decision 51). It
 * is asked for with the first large body, so that a process that gets none has V8's own rule.
 */
function collectSooner(): void {
  if (isAsked) return;
  isAsked = true;
  setFlagsFromString('--heap-growing-percent=40');
}
