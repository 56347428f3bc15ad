import { invalid, preconditionFailed } from '../../../errors.js';
import { readEntityTags } from '../../../http/requests/conditions.js';
import { parameter } from '../../../http/routes/route.js';
import { TEXT } from '../../../platform/schema/schema.js';
import type { StoredDocument } from '../store/document.js';

/** The versions of a document that a write is meant for, mostly one; null for any. */
export type ExpectedVersion = readonly Date[] | null;

const FORM = /^"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"$/;

/** The header that a route takes with it. */
export const IF_MATCH = {
  'if-match': parameter('The `ETag` of the document as it is known: 412 when it was changed since', TEXT),
};

/**
 * Reads an `If-Match` header (RFC 9110 13.1.1): the `ETag` of a document or several, as a proxy may have marked them
 * (`W/`, `-gzip`), or `*` for any version. 400 INVALID_IF_MATCH for anything else, an empty one too: its sender means a
 * condition, and lost the `ETag` on the way.
 */
export function readIfMatch(header: string | undefined): ExpectedVersion {
  if (header === undefined || header.trim() === '*') return null;
  const versions = readEntityTags(header)?.map((tag) => new Date(FORM.exec(tag)?.[1] ?? NaN));
  if (!versions?.length || versions.some((version) => Number.isNaN(version.getTime()))) {
    throw invalid('INVALID_IF_MATCH', 'If-Match takes the ETag of a document, which is its updatedAt in quotes, or *');
  }
  return versions;
}

/** 412 CHANGED_MEANWHILE for a document of another version. */
export function requireVersion({ updatedAt }: StoredDocument, expected: ExpectedVersion): void {
  if (!expected) return;
  if (updatedAt instanceof Date && expected.some((version) => version.getTime() === updatedAt.getTime())) return;
  throw preconditionFailed(
    'CHANGED_MEANWHILE',
    'The document was changed since: read it again, and write what you mean to change now',
  );
}
