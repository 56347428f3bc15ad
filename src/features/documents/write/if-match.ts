import { invalid, preconditionFailed } from '../../../errors.js';
import { parameter } from '../../../http/routes/route.js';
import { TEXT } from '../../../platform/schema/schema.js';
import type { StoredDocument } from '../store/document.js';

/** The version of a document that a write is meant for; null for any. */
export type ExpectedVersion = Date | null;

const FORM = /^"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"$/;

/** The header that a route takes with it. */
export const IF_MATCH = {
  'if-match': parameter('The `ETag` of the document as it is known: 412 when it was changed since', TEXT),
};

/**
 * Reads an `If-Match` header: a document's `ETag`, or `*` for any version. 400 INVALID_IF_MATCH for anything else, an
 * empty one too: its sender means a condition, and lost the `ETag` on the way.
 */
export function readIfMatch(header: string | undefined): ExpectedVersion {
  if (header === undefined || header === '*') return null;
  const version = new Date(FORM.exec(header)?.[1] ?? NaN);
  if (Number.isNaN(version.getTime())) {
    throw invalid('INVALID_IF_MATCH', 'If-Match takes the ETag of a document, which is its updatedAt in quotes, or *');
  }
  return version;
}

/** The condition of a write that it is for no other version. */
export function versionFilter(expected: ExpectedVersion): Record<string, unknown> {
  return expected ? { updatedAt: expected } : {};
}

/** 412 CHANGED_MEANWHILE for a document of another version. */
export function requireVersion({ updatedAt }: StoredDocument, expected: ExpectedVersion): void {
  if (!expected || (updatedAt instanceof Date && updatedAt.getTime() === expected.getTime())) return;
  throw preconditionFailed(
    'CHANGED_MEANWHILE',
    'The document was changed since: read it again, and write what you mean to change now',
  );
}

/** The moment to note for a write: later than the version that it replaces, so that no two have the same `ETag`. */
export function nextVersion(nowMs: number, expected: ExpectedVersion): Date {
  return new Date(Math.max(nowMs, (expected?.getTime() ?? 0) + 1));
}
