import { isUtf8 } from 'node:buffer';
import type { Context } from 'koa';
import { invalid, tooLarge } from '../../errors.js';
import { JSON_TYPES } from './read-bytes.js';
import type { Config } from '../../config/config.js';

const MAX_JSON_DEPTH = 32;
/** The most keys of one object: beyond it each look at it takes noticeable time. */
const MAX_OBJECT_KEYS = 10_000;

/** What a JSON body may hold at most. */
export interface BodyLimit {
  bytes: number;
  /** As `countValues` counts them. */
  values: number;
}

/** 400 INVALID_BODY for a body that says it is something else than JSON. */
export function requireJsonType(ctx: Context): void {
  if (ctx.req.headers['content-type'] === 'application/json' || ctx.is(JSON_TYPES)) return;
  throw invalid('INVALID_BODY', 'Send the body as JSON with the header Content-Type: application/json');
}

/** 413 TOO_MANY_VALUES, to be asked before the body is parsed. */
export function requireFewValues(values: number, { values: limit }: BodyLimit): void {
  if (values <= limit) return;
  throw tooLarge('TOO_MANY_VALUES', `The body has ${values} values, lists and objects included: at most ${limit}`, {
    details: [{ field: '', rule: 'values', message: `${values} of at most ${limit}` }],
  });
}

/**
 * The body as JSON of at most 32 levels and 10,000 keys an object; undefined for none. 400 for what is no JSON or not
 * UTF-8, 413 TOO_MANY_KEYS.
 */
export function parseJson(bytes: Buffer): unknown {
  const text = decodeText(bytes);
  if (text === '') return undefined;
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

const BYTE_ORDER_MARK = '\ufeff';

/** Decoded leniently, a wrong byte would be stored as something else. */
function decodeText(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw invalid('INVALID_JSON', 'The body is not valid JSON: its text is not UTF-8');
  const text = bytes.toString();
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

/** Parsed, such a key is harmless; copied into another object, it would become that one's prototype. */
const PROTOTYPE_KEY =
  /"(?:_|\\u005f){2}(?:p|\\u0070)(?:r|\\u0072)(?:o|\\u006f)(?:t|\\u0074)(?:o|\\u006f)(?:_|\\u005f){2}"\s*:/i;

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

/** The tokens that may come next in a JSON text. */
type Expected = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end' | 'nothing';

const SPACE = /[ \t\n\r]*/y;
// In the string, the parts between escapes are one step each: a long text costs no more than its length.
const TOKEN =
  /[{}[\],:]|"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;

/**
 * Where a text stops being JSON, counted in characters from 0; its length when it ends too soon, null when it is JSON.
 */
export function findJsonMistake(text: string): number | null {
  const closing: string[] = [];
  let expected: Expected = 'value';
  for (let at = endOf(SPACE, text, 0); at < text.length;) {
    const end = endOf(TOKEN, text, at);
    if (end === at) return at;
    const next = afterToken(expected, text[at]!, closing);
    if (next === null) return at;
    expected = next;
    at = endOf(SPACE, text, end);
  }
  return expected === 'nothing' ? null : text.length;
}

/** Finds what may follow a token, known by its first character; null for a token that may not be there. */
function afterToken(expected: Expected, token: string, closing: string[]): Expected | null {
  const isValue = expected === 'value' || expected === 'value or end';
  switch (token) {
    case '{':
    case '[':
      if (!isValue) return null;
      closing.push(token === '{' ? '}' : ']');
      return token === '{' ? 'key or end' : 'value or end';
    case '}':
    case ']':
      if (!expected.endsWith(' or end') || closing.pop() !== token) return null;
      return closing.length === 0 ? 'nothing' : 'comma or end';
    case ',':
      if (expected !== 'comma or end') return null;
      return closing.at(-1) === '}' ? 'key' : 'value';
    case ':':
      return expected === 'colon' ? 'value' : null;
    case '"':
      if (expected === 'key' || expected === 'key or end') return 'colon';
  }
  if (!isValue) return null;
  return closing.length === 0 ? 'nothing' : 'comma or end';
}

/** Where a match that begins there ends; there itself when there is none. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

/** What the JSON body of a route is: credentials and small forms, one document, or many things at once. */
export type BodySize = 'small' | 'document' | 'many';

const MIB = 1024 * 1024;

/** The limits of a route's JSON body. */
export function bodyLimit({ documentValues, bodyValues }: Config, size: BodySize): BodyLimit {
  if (size === 'small') return { bytes: 16 * 1024, values: 200 };
  return { bytes: MIB, values: size === 'many' ? bodyValues : documentValues };
}
