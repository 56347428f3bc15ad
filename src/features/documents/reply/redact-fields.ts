import { deserialize, serialize, type Document } from 'bson';
import { invalid, type AppError } from '../../../errors.js';
import { endOfName, endOfValue, readInt32 } from '../../../platform/database/bson-json.js';
import { namedPath } from '../../collections/fields/nocase.js';
import { ANY_FIELD, findRead } from './fields-read.js';
import type { FieldVisibility } from '../../access/rules/field-visibility.js';

/** The stored document without what the caller does not see of it; null sees everything. */
export function redactRow(row: Buffer, visibility: FieldVisibility | null): Buffer {
  if (!visibility) return row;
  return withoutFields(
    row,
    hiddenIn(visibility, () => row),
  );
}

/** redactRow for a document as an object. */
export function redactDocument<T extends Document>(document: T, visibility: FieldVisibility | null): T {
  if (!visibility) return document;
  const unseen = hiddenIn(visibility, () => Buffer.from(serialize(document)));
  return Object.fromEntries(Object.entries(document).filter(([name]) => !unseen.has(name))) as T;
}

function hiddenIn({ hidden: always, conditional }: FieldVisibility, row: () => Buffer): ReadonlySet<string> {
  const hidden = new Set(always);
  if (conditional.length === 0) return hidden;
  const bytes = row();
  for (const { name, matcher } of conditional) if (!matcher.matches(bytes)) hidden.add(name);
  return hidden;
}

/** The document's bytes without some of its top-level fields. */
function withoutFields(row: Buffer, names: ReadonlySet<string>): Buffer {
  const limit = readInt32(row, 0) - 1;
  const kept: Buffer[] = [];
  let from = 4;
  for (let at = 4; at < limit;) {
    const nameEnd = endOfName(row, at + 1);
    const end = endOfValue(row, row[at]!, nameEnd + 1);
    if (end < 0) return withoutFieldsDecoded(row, names);
    if (names.has(row.toString('utf8', at + 1, nameEnd))) {
      kept.push(row.subarray(from, at));
      from = end;
    }
    at = end;
  }
  if (kept.length === 0) return row;
  const length = Buffer.alloc(4);
  const whole = Buffer.concat([length, ...kept, row.subarray(from, limit + 1)]);
  whole.writeInt32LE(whole.length, 0);
  return whole;
}

/** The same for values of types that JSON lacks, which only other programs can have stored. */
function withoutFieldsDecoded(row: Buffer, names: ReadonlySet<string>): Buffer {
  const document = deserialize(row, { promoteValues: false, validation: { utf8: false } });
  return Buffer.from(serialize(Object.fromEntries(Object.entries(document).filter(([name]) => !names.has(name)))));
}

/** 400 FIELD_NOT_READABLE for a request that names a field which some documents do not show to its caller. */
export function fieldNotReadable(field: string): AppError {
  const message = `${JSON.stringify(field)} is not shown to you in every document: it cannot be named here`;
  return invalid('FIELD_NOT_READABLE', message, { details: [{ field, rule: 'read', message }] });
}

/** The parts of a query that name fields. */
interface Naming {
  fields: readonly string[] | null;
  populate?: readonly { path: string }[];
  conditions?: readonly Document[];
  sort?: readonly { path: string }[];
}

/** 400 FIELD_NOT_READABLE for a query that shows, filters by, sorts by or populates what the caller does not see. */
export function requireReadableNames(visibility: FieldVisibility | null, query: Naming): void {
  if (!visibility) return;
  const { fields, populate = [], conditions = [], sort = [] } = query;
  const paths = [...(fields ?? []), ...[...populate, ...sort].map(({ path }) => path)];
  const named = paths.map((path) => namedPath(path).split('.', 1)[0]!).find((root) => visibility.restricted.has(root));
  if (named !== undefined) throw fieldNotReadable(named);
  for (const condition of conditions) requireReadableFilter(condition, visibility.restricted);
}

/**
 * 400 FIELD_NOT_READABLE for a filter that reads, of the stored documents that it is run on, what the caller does not
 * see of all of them.
 */
export function requireReadableFilter(filter: Document, unreadable: ReadonlySet<string>): void {
  const read = findRead(filter, unreadable);
  if (read === ANY_FIELD) throw wholeNotReadable();
  if (read !== null) throw fieldNotReadable(read);
}

/** The 400 for a filter that could read fields without naming them. */
function wholeNotReadable(): AppError {
  const message = `This filter runs on stored documents and must name each field that it reads: use a later $match stage for ${ANY_FIELD}, $$CURRENT and computed names`;
  return invalid('FIELD_NOT_READABLE', message, { details: [{ field: ANY_FIELD, rule: 'read', message }] });
}
