import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ParsedUrlQuery } from 'node:querystring';
import Koa, { type Context, type Request } from 'koa';

const NOT_FOUND = 404;

type Handler = (ctx: Context) => Promise<unknown>;

/** The method by which Koa answers a request; its types leave it out. */
interface HandlesRequests {
  handleRequest(ctx: Context, handler: Handler): Promise<unknown>;
}

/** What Koa makes of a request: context, request or response. */
class Part {
  ctx: object | undefined;
  request: object | undefined;
  response: object | undefined;
  originalUrl: string | undefined;
  state: object | undefined;

  constructor(
    readonly app: Koa,
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
  ) {}
}

/** Makes parts with all fields at once: Koa's own grow by one at a time, and cost a request as much as its routing. */
function partOf(prototype: object): typeof Part {
  const Own = class extends Part {};
  Object.setPrototypeOf(Own.prototype, prototype);
  return Own;
}

/**
 * A Koa that does nothing more for requests whose handler has replied itself, which are nearly all. Koa would hold what
 * a request was made of until its reply is over, hours for a stream, and add a dozen listeners to each reply.
 */
class LeanKoa extends Koa {
  readonly #parts = [partOf(this.context), partOf(this.request), partOf(this.response)] as const;

  override createContext<State>(req: IncomingMessage, res: ServerResponse): Koa.ParameterizedContext<State> {
    const [OwnContext, OwnRequest, OwnResponse] = this.#parts;
    const context = new OwnContext(this, req, res);
    const request = new OwnRequest(this, req, res);
    const response = new OwnResponse(this, req, res);
    context.request = response.request = request;
    context.response = request.response = response;
    request.ctx = response.ctx = context;
    context.originalUrl = request.originalUrl = req.url;
    context.state = {};
    // What is Koa's own of it is in its prototype.
    return context as unknown as Koa.ParameterizedContext<State>;
  }

  async handleRequest(ctx: Context, handler: Handler): Promise<unknown> {
    const { res } = ctx;
    res.statusCode = NOT_FOUND;
    try {
      await handler(ctx);
    } catch (error) {
      ctx.onerror(error as Error);
      return undefined;
    }
    if (ctx.respond === false) return undefined;
    const { statusCode } = res;
    // Its types hide the method.
    return (Koa.prototype as unknown as HandlesRequests).handleRequest.call(this, ctx, () => {
      res.statusCode = statusCode;
      return Promise.resolve();
    });
  }
}

/** A request with what its query was read as last, and of which text. */
type Queried = Request & { parsed?: { text: string; query: ParsedUrlQuery } };

function readQuery(this: Queried): ParsedUrlQuery {
  const text = this.querystring;
  if (this.parsed?.text !== text) this.parsed = { text, query: parseQuery(text) };
  return this.parsed.query;
}

/** An application without routes; `report` gets errors that come too late for an answer. */
export function openKoa(report: (error: Error) => void): Koa {
  const api = new LeanKoa();
  const own = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(api.request), 'query')!;
  Object.defineProperty(api.request, 'query', { ...own, get: readQuery });
  api.silent = true;
  api.on('error', report);
  return api;
}

/**
 * The parameters of a query string; what is given more than once is a list. In one pass: Koa's own looks for all values
 * of a name once more at each of them.
 */
export function parseQuery(text: string): ParsedUrlQuery {
  const query = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const given = query.get(name);
    if (given === undefined) query.set(name, value);
    else if (typeof given === 'string') query.set(name, [given, value]);
    else given.push(value);
  }
  return Object.fromEntries(query);
}
