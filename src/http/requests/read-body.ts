import type { Context, Middleware } from 'koa';
import { type AppError, invalid, tooLarge } from '../../errors.js';

const MAX_JSON_BYTES = 1024 * 1024;
const MAX_JSON_DEPTH = 32;
/** The most keys of one object: beyond it each look at it takes noticeable time. */
export const MAX_OBJECT_KEYS = 10_000;

/**
 * Parses a JSON body of at most 1 MiB, 32 levels and 10,000 keys an object into `ctx.request.body`; 400 or 413
 * otherwise. An empty body leaves it undefined.
 */
export function readJson(): Middleware {
  return async (ctx, next) => {
    parse ??= await openParser();
    let parsed = false;
    try {
      await parse(ctx, () => {
        parsed = true;
        return Promise.resolve();
      });
    } catch (error) {
      throw bodyError(error);
    }
    if (parsed && hasBody(ctx) && !ctx.is('json', '+json')) {
      throw invalid('INVALID_BODY', 'Send the body as JSON with the header Content-Type: application/json');
    }
    measureBody(ctx.request.body);
    return next();
  };
}

let parse: Middleware | undefined;

/** Loaded with the first body: with all that it brings it is a sixth of the server's start and memory. */
async function openParser(): Promise<Middleware> {
  const { HttpMethodEnum, koaBody } = await import('koa-body');
  return koaBody({
    json: true,
    jsonLimit: MAX_JSON_BYTES,
    jsonStrict: false,
    urlencoded: false,
    text: false,
    multipart: false,
    parsedMethods: [HttpMethodEnum.POST, HttpMethodEnum.PUT, HttpMethodEnum.PATCH, HttpMethodEnum.DELETE],
  });
}

function hasBody(ctx: Context): boolean {
  return ctx.get('transfer-encoding') !== '' || Number(ctx.get('content-length')) > 0;
}

function bodyError(error: unknown): AppError {
  const status = (error as { status?: number }).status;
  if (status === 413) return tooLarge('BODY_TOO_LARGE', `The body is larger than ${MAX_JSON_BYTES} bytes`);
  // The parser itself refuses a key that would reach a prototype.
  if (error instanceof SyntaxError && error.message.includes('prototype')) {
    return invalid('INVALID_BODY', 'A field must not be named "__proto__"');
  }
  // Everything else that reading can throw is the client's doing: bad JSON, bad gzip, an unknown encoding, a body cut
  // short.
  return invalid('INVALID_JSON', 'The body is not valid JSON', { cause: error });
}

/** Walks level by level, so that depth costs memory of one level and never the call stack. */
function measureBody(body: unknown): void {
  let level: unknown[] = [body];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_JSON_DEPTH) {
      throw invalid('INVALID_BODY', `The body is nested more than ${MAX_JSON_DEPTH} levels deep`);
    }
    const below: unknown[] = [];
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      for (const child of Array.isArray(item) ? (item as unknown[]) : valuesOf(item)) {
        if (typeof child === 'object' && child !== null) below.push(child);
      }
    }
    level = below;
  }
}

function valuesOf(item: object): unknown[] {
  const keys = Object.keys(item);
  if (keys.length > MAX_OBJECT_KEYS) {
    throw tooLarge('TOO_MANY_KEYS', `An object of the body has more than ${MAX_OBJECT_KEYS} keys`);
  }
  return keys.map((key) => (item as Record<string, unknown>)[key]);
}

/** The body as a JSON object; 400 INVALID_BODY for anything else. */
export function requireObjectBody(ctx: Context): Record<string, unknown> {
  const body = (ctx.request as { body?: unknown }).body;
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw invalid('INVALID_BODY', 'The body must be a JSON object');
  }
  return body as Record<string, unknown>;
}
