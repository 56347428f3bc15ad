import type { RouteContext } from '../../../http/routes/route.js';
import { addHeaders } from '../../../http/replies/reply.js';
import { tagOf, tagOfJson } from './document-tag.js';
import type { PresentedDocument } from './present-document.js';

/** The header of every answer that is one document. */
export const ETAG = { ETag: 'Names this version of the document: its `updatedAt`, in quotes' };

/** The document, once its answer bears its `ETag`. */
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
