import type { IncomingHttpHeaders } from 'node:http';

/** What a file or page is known by: its `ETag` in quotes, and when it last changed. */
export interface Validators {
  etag: string;
  lastModified?: Date;
}

const ENTITY_TAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\uffff]*"/y;
const BETWEEN = /\s*(?:,[\s,]*|$)/y;
/** What Apache, Jetty and others add to a tag when they compress the reply that it names. */
const COMPRESSED = /-{1,2}(?:gzip|br|zstd|deflate)"$/;

/**
 * Reads a list of entity tags (RFC 9110 8.8.3): null for one that is malformed. Marks that a proxy adds when it
 * compresses are removed, `W/` in front and `-gzip` behind: a client sends back what it was given.
 */
export function readEntityTags(header: string): string[] | null {
  const tags: string[] = [];
  // Empty elements say nothing, the first too (RFC 9110 5.6.1.2).
  const list = header.replace(/^[\s,]+/, '').trimEnd();
  // Not from what is left over each time: that would be quadratic in the length of the header.
  for (let at = 0; at < list.length; at = BETWEEN.lastIndex) {
    ENTITY_TAG.lastIndex = at;
    const [tag] = ENTITY_TAG.exec(list) ?? [];
    if (tag === undefined) return null;
    tags.push(tag.replace(/^W\//, '').replace(COMPRESSED, '"'));
    BETWEEN.lastIndex = ENTITY_TAG.lastIndex;
    if (!BETWEEN.test(list)) return null;
  }
  return tags;
}

/**
 * Evaluates the conditions of a GET or HEAD in the order of RFC 9110 13.2.2: `not-modified` is answered with 304,
 * `failed` with 412. Malformed conditions count as not sent.
 */
export function evaluateConditions(
  headers: IncomingHttpHeaders,
  { etag, lastModified }: Validators,
): 'proceed' | 'not-modified' | 'failed' {
  const match = headers['if-match'];
  if (match !== undefined) {
    if (!names(match, etag)) return 'failed';
  } else if (isLater(lastModified, headers['if-unmodified-since'])) {
    return 'failed';
  }
  const noneMatch = headers['if-none-match'];
  if (noneMatch !== undefined) return names(noneMatch, etag) ? 'not-modified' : 'proceed';
  return isLater(lastModified, headers['if-modified-since']) === false ? 'not-modified' : 'proceed';
}

function names(header: string, etag: string): boolean {
  return header.trim() === '*' || (readEntityTags(header)?.includes(etag) ?? false);
}

/** Whole seconds, as HTTP has dates; undefined without a date of either. */
function isLater(lastModified: Date | undefined, header: string | undefined): boolean | undefined {
  const since = header === undefined ? NaN : Date.parse(header);
  if (lastModified === undefined || Number.isNaN(since)) return undefined;
  return Math.floor(lastModified.getTime() / 1000) > Math.floor(since / 1000);
}
