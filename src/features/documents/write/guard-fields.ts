import type { Document } from 'bson';
import { forbidden, type AppError } from '../../../errors.js';
import type { EndWriter, Writer } from '../../access/access-rules.js';
import { NOTHING, filterOf } from '../../access/rules/compile-rule.js';
import type { GuardedField } from '../../access/rules/field-sight.js';
import type { Collection } from '../../collections/collection.js';
import { concealInDocument } from '../reply/conceal-fields.js';
import { presentDocument, type PresentedDocument } from '../reply/present-document.js';
import { changedPaths, matchesFilter } from './admit-write.js';
import type { ChangedFields } from './document-change.js';

/** A document that was written as its writer sees it. */
export function presentWritten(stored: Record<string, unknown>, writer: Writer): PresentedDocument {
  return presentDocument(concealInDocument(stored, writer?.fields?.sight ?? null));
}

/** What a change needs of the stored document, and the refusal where that does not meet it. */
export interface FieldCondition {
  filter: Document;
  refusal: () => AppError;
}

/**
 * Conditions on the stored document for the guarded fields of a change (rules.md 7): the field's rule holds, or the
 * writer sees the field and sends it back as it is. 403 FIELD_PROTECTED where no document could meet that.
 */
export function guardChange(writer: Writer, change: ChangedFields): FieldCondition[] {
  if (!writer?.fields) return [];
  const conditions: FieldCondition[] = [];
  for (const key of changedPaths(change)) {
    const name = key.split('.', 1)[0]!;
    const field = writer.fields.guarded.get(name);
    if (!field) continue;
    // What is stored decides how the change of a part ends, or that by an operator.
    const isByOperator = change.results?.has(key) ?? false;
    if ((key !== name || isByOperator) && filterOf(field.read) !== null) throw fieldProtected(name);
    const may = filterOf(field.write);
    if (may === null) continue;
    const value: unknown = Object.hasOwn(change.set, key) ? change.set[key] : null;
    const filters = [may, ...(isByOperator ? [] : [sameFilter(field, key, value)])].filter(
      (filter) => filter !== NOTHING,
    );
    if (filters.length === 0) throw fieldProtected(name);
    conditions.push({ filter: { $or: filters }, refusal: () => fieldProtected(name) });
  }
  return conditions;
}

/**
 * The condition that a field is sent back as the writer was shown it: what is not shown cannot be found out by sending
 * guesses.
 */
export function sameFilter(field: GuardedField | undefined, key: string, value: unknown): Document {
  const seen = field ? filterOf(field.read) : null;
  if (seen === NOTHING) return NOTHING;
  const same: Document[] = [{ [key]: { $eq: value } }];
  // A list that holds such a list is another value.
  if (Array.isArray(value)) same.push({ [key]: { $not: { $elemMatch: { $eq: value } } } });
  if (seen) same.push(seen);
  return same.length === 1 ? same[0]! : { $and: same };
}

/**
 * 403 FIELD_PROTECTED for a new document with a field that its writer may not set; as the service would set it, by
 * default or stamp, it may be sent by those who see it.
 */
export function requireSettable(
  { fields }: Collection,
  writer: EndWriter,
  body: Record<string, unknown>,
  stored: Document,
): void {
  for (const [name, { read, write }] of writer.fields?.guarded ?? []) {
    const may = filterOf(write);
    if (may === null || !Object.hasOwn(body, name)) continue;
    const { default: preset, stamp } = fields.find((field) => field.name === name)!;
    const own = preset ?? (stamp ? writer.userId : null);
    if (body[name] === own && holds(writer, filterOf(read), stored)) continue;
    if (!holds(writer, may, stored)) throw fieldProtected(name);
  }
}

function holds(writer: EndWriter, filter: Document | null, document: Document): boolean {
  return filter === null || (filter !== NOTHING && matchesFilter(writer, filter, document));
}

function fieldProtected(field: string): AppError {
  const message = `You may not set ${field}`;
  return forbidden('FIELD_PROTECTED', message, { details: [{ field, rule: 'write', message }] });
}
