import type { RouteContext } from '../../../http/routes/route.js';
import { addHeaders } from '../../../http/replies/reply.js';
import type { PresentedDocument } from './present-document.js';

/** The `ETag` of a document as it is answered: its `updatedAt` in quotes; null when that is not among its fields. */
function tagOf({ updatedAt }: PresentedDocument): string | null {
  return updatedAt instanceof Date ? `"${updatedAt.toISOString()}"` : null;
}

const LAST_NAME = '"updatedAt":';
/** A moment in quotes. */
const TAG_CHARACTERS = 26;

/** The same of a document's JSON, which ends with that field; null when it does not, or is too large to be one text. */
function tagOfJson(reply: string | object): string | null {
  if (typeof reply !== 'string') return null;
  const start = reply.length - 1 - TAG_CHARACTERS;
  const isThere = reply.startsWith(LAST_NAME, start - LAST_NAME.length) && reply.endsWith('"}');
  return isThere ? reply.slice(start, -1) : null;
}

/** The header of every answer that is one document. */
export const ETAG = { ETag: 'Names this version of the document: its `updatedAt`, in quotes' };

/** The document, once its response has an `ETag`. */
export function withTag(ctx: RouteContext, document: PresentedDocument): PresentedDocument {
  setTag(ctx, tagOf(document));
  return document;
}

/** The same for the document's JSON. */
export function withTagOfJson<T extends string | object>(ctx: RouteContext, reply: T): T {
  setTag(ctx, tagOfJson(reply));
  return reply;
}

function setTag(ctx: RouteContext, tag: string | null): void {
  if (tag !== null) addHeaders(ctx, 'ETag', tag);
}
