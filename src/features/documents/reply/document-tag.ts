import type { PresentedDocument } from './present-document.js';

/** The `ETag` of a document as it is answered: its `updatedAt` in quotes; null when that is not among its fields. */
export function tagOf({ updatedAt }: PresentedDocument): string | null {
  return updatedAt instanceof Date ? `"${updatedAt.toISOString()}"` : null;
}

const LAST_NAME = '"updatedAt":';
/** A moment in quotes. */
const TAG_CHARACTERS = 26;

/** The same of a document's JSON, which ends with that field; null when it does not, or is too large to be one text. */
export function tagOfJson(reply: string | object): string | null {
  if (typeof reply !== 'string') return null;
  const start = reply.length - 1 - TAG_CHARACTERS;
  const isThere = reply.startsWith(LAST_NAME, start - LAST_NAME.length) && reply.endsWith('"}');
  return isThere ? reply.slice(start, -1) : null;
}
