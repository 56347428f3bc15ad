import { isUtf8 } from 'node:buffer';
import type { Context, Middleware } from 'koa';
import { type AppError, invalid, tooLarge } from '../../errors.js';
import { findJsonMistake } from './find-json-mistake.js';

const MAX_JSON_BYTES = 1024 * 1024;
const MAX_JSON_DEPTH = 32;
/** The most keys of one object: beyond it each look at it takes noticeable time. */
const MAX_OBJECT_KEYS = 10_000;
/** The most keys of all objects together. */
const MAX_BODY_KEYS = 30_000;
/** The shortest key with its value: `"":1,`. */
const MIN_KEY_CHARACTERS = 5;

const JSON_TYPES = ['json', '+json'];

/**
 * Parses a JSON body of at most 1 MiB, 32 levels, 30,000 keys and 10,000 keys an object into `ctx.request.body`; 400 or
 * 413 otherwise, for text that is not UTF-8 too. An empty body leaves it undefined.
 */
export function readJson(): Middleware {
  return async (ctx, next) => {
    read ??= await openReader();
    const request = ctx.request as { body?: unknown };
    let arrived = false;
    try {
      await read(ctx, () => {
        arrived = true;
        return Promise.resolve();
      });
    } catch (error) {
      throw bodyError(error);
    }
    if (arrived && hasBody(ctx) && !ctx.is(JSON_TYPES)) {
      throw invalid('INVALID_BODY', 'Send the body as JSON with the header Content-Type: application/json');
    }
    if (Buffer.isBuffer(request.body)) request.body = parseJson(decodeText(request.body));
    return next() as Promise<unknown>;
  };
}

let read: Middleware | undefined;

/** Loaded with the first body: with all that it brings it is a sixth of the server's start and memory. */
async function openReader(): Promise<Middleware> {
  const { HttpMethodEnum, koaBody } = await import('koa-body');
  // As text, so that it is measured before it is parsed; without an encoding, so that it is seen whether it is UTF-8.
  return koaBody({
    json: false,
    urlencoded: false,
    multipart: false,
    text: true,
    textTypes: JSON_TYPES,
    encoding: '',
    textLimit: MAX_JSON_BYTES,
    parsedMethods: [HttpMethodEnum.POST, HttpMethodEnum.PUT, HttpMethodEnum.PATCH, HttpMethodEnum.DELETE],
  });
}

const BYTE_ORDER_MARK = '\ufeff';

/** Decoded leniently, a wrong byte would be stored as something else. */
function decodeText(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw invalid('INVALID_JSON', 'The body is not valid JSON: its text is not UTF-8');
  const text = bytes.toString();
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

function parseJson(text: string): unknown {
  if (text === '') return undefined;
  if (text.length > MAX_BODY_KEYS * MIN_KEY_CHARACTERS && countKeys(text) > MAX_BODY_KEYS) {
    throw tooLarge('TOO_MANY_KEYS', `The objects of the body have more than ${MAX_BODY_KEYS} keys in all`);
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    const place = findJsonMistake(text);
    throw invalid('INVALID_JSON', `The body is not valid JSON${place === null ? '' : ` (at position ${place})`}`, {
      cause: error,
    });
  }
  measureBody(body, PROTOTYPE_KEY.test(text));
  return body;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** The keys of all objects in a JSON text, each as often as it stands there. */
function countKeys(text: string): number {
  let keys = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      quoted = !quoted;
    } else if (quoted) {
      if (code === BACKSLASH) at++;
    } else if (code === COLON) {
      keys++;
    }
  }
  return keys;
}

/** Parsed, such a key is harmless; copied into another object, it would become that one's prototype. */
const PROTOTYPE_KEY =
  /"(?:_|\\u005f){2}(?:p|\\u0070)(?:r|\\u0072)(?:o|\\u006f)(?:t|\\u0074)(?:o|\\u006f)(?:_|\\u005f){2}"\s*:/i;

function hasBody(ctx: Context): boolean {
  return ctx.get('transfer-encoding') !== '' || Number(ctx.get('content-length')) > 0;
}

function bodyError(error: unknown): AppError {
  const status = (error as { status?: number }).status;
  if (status === 413) return tooLarge('BODY_TOO_LARGE', `The body is larger than ${MAX_JSON_BYTES} bytes`);
  // Everything else that reading can throw is the client's doing: bad gzip, an unknown encoding, a body cut short.
  return invalid('INVALID_JSON', 'The body is not valid JSON', { cause: error });
}

/** Walks level by level, so that depth costs memory of one level and never the call stack. */
function measureBody(body: unknown, maySetPrototype: boolean): void {
  let level: unknown[] = [body];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_JSON_DEPTH) {
      throw invalid('INVALID_BODY', `The body is nested more than ${MAX_JSON_DEPTH} levels deep`);
    }
    const below: unknown[] = [];
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      for (const child of Array.isArray(item) ? (item as unknown[]) : valuesOf(item, maySetPrototype)) {
        if (typeof child === 'object' && child !== null) below.push(child);
      }
    }
    level = below;
  }
}

function valuesOf(item: object, maySetPrototype: boolean): unknown[] {
  if (maySetPrototype && Object.hasOwn(item, '__proto__')) {
    throw invalid('INVALID_BODY', 'A field must not be named "__proto__"');
  }
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
