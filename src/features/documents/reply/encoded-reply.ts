import type { LargeReply, WrittenReply } from '../../../http/replies/reply.js';
import { JsonWriter } from '../../../platform/database/bson-json.js';

/**
 * JSON for a reply: `latin1` text that stands for UTF-8, or what writes it when it is sent; in parts when it is large,
 * each made when it is asked for.
 */
export type EncodedReply = string | WrittenReply | LargeReply;

/** Writes one that is not large; returns the header lines that come of it. */
export function writeReply(out: JsonWriter, reply: string | WrittenReply): string {
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
