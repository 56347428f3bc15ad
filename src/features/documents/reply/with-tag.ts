import type { JsonWriter } from '../../../platform/database/bson-json.js';
import { addHeaders } from '../../../http/replies/reply.js';
import { evaluateConditions } from '../../../http/requests/conditions.js';
import type { RouteContext } from '../../../http/routes/route.js';
import { writeReply, type EncodedReply } from './encoded-reply.js';
import type { PresentedDocument } from './present-document.js';

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
