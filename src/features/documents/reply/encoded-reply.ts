import { type LargeReply, type WrittenReply, addHeaders } from '../../../http/replies/reply.js';
import { JsonWriter } from '../../../platform/database/bson-json.js';
import { evaluateConditions } from '../../../http/requests/conditions.js';
import type { RouteContext } from '../../../http/routes/route.js';
import type { PresentedDocument } from './present-document.js';

/**
 * JSON for a reply: `latin1` text that stands for UTF-8, or what writes it when it is sent; in parts when it is large,
 * each made when it is asked for.
 */
export type EncodedReply = string | WrittenReply | LargeReply;

/** Writes one that is not large; returns the header lines that come of it. */
function writeReply(out: JsonWriter, reply: string | WrittenReply): string {
  if (typeof reply !== 'string') return reply.write(out);
  out.appendBytes(reply);
  return '';
}

/** The reply with text before and behind it. */
export function wrapReply(opening: string, reply: EncodedReply, closing: string): EncodedReply {
  if (typeof reply === 'string') return opening + reply + closing;
  if ('parts' in reply) return { parts: around(opening, reply.parts, closing), release: reply.release };
  return {
    write(out) {
      out.appendBytes(opening);
      const headers = reply.write(out);
      out.appendBytes(closing);
      return headers;
    },
  };
}

function* around<T>(opening: string, parts: Iterable<T>, closing: string): Generator<T | string> {
  yield opening;
  yield* parts;
  yield closing;
}

/** What it says, for a use other than sending it. */
export function readEncoded(reply: EncodedReply): unknown {
  const isLarge = typeof reply !== 'string' && 'parts' in reply;
  try {
    const parts = isLarge ? [...reply.parts] : [textOf(reply)];
    const bytes = parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part));
    return JSON.parse(Buffer.concat(bytes).toString()) as unknown;
  } finally {
    if (isLarge) reply.release();
  }
}

function textOf(reply: string | WrittenReply): string {
  const out = new JsonWriter();
  writeReply(out, reply);
  return out.text();
}

/** The header of every answer that is one document. */
export const ETAG = { ETag: '`updatedAt` in quotes' };

/** The document, once its response has an `ETag`: its `updatedAt` in quotes, where that is among its fields. */
export function withTag(ctx: RouteContext, document: PresentedDocument): PresentedDocument {
  const { updatedAt } = document;
  if (updatedAt instanceof Date) addHeaders(ctx, `ETag: "${updatedAt.toISOString()}"\r\n`);
  return document;
}

/** The same for the document's JSON; without a tag where it is too large to be one text. */
export function withTagOfJson(reply: EncodedReply): EncodedReply {
  if (typeof reply !== 'string' && 'parts' in reply) return reply;
  return {
    write(out) {
      writeReply(out, reply);
      return tagOf(out);
    },
    isCopied: typeof reply === 'string' ? undefined : reply.isCopied,
  };
}

/** Whether the `ETag` among header lines names one of the copies of an `If-None-Match`; undefined without that. */
export function copiedBy(copies: string | undefined): ((lines: string) => boolean) | undefined {
  if (copies === undefined) return undefined;
  return (lines) => {
    const etag = lines.slice('ETag: '.length, -'\r\n'.length);
    return evaluateConditions({ 'if-none-match': copies }, { etag }) === 'not-modified';
  };
}

const LAST_NAME = '"updatedAt":';
/** A moment in quotes. */
const TAG_CHARACTERS = 26;

/** The line for what was written, which ends with that field; empty when it does not. */
function tagOf(out: JsonWriter): string {
  const last = out.text(Math.max(0, out.place - LAST_NAME.length - TAG_CHARACTERS - 1));
  return last.startsWith(LAST_NAME) && last.endsWith('"}') ? `ETag: ${last.slice(LAST_NAME.length, -1)}\r\n` : '';
}
