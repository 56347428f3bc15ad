import type { App } from '../../../app.js';
import { arrayOf, ID, object, TEXT, WHOLE, type TypeOf } from '../../../platform/schema/schema.js';
import type { Collection } from '../../collections/collection.js';
import { comparedValue } from '../../collections/fields/nocase.js';
import { readUnique } from '../../collections/fields/unique.js';
import { asStored } from '../../collections/users-collection.js';
import { documentStore } from '../store/document-store.js';
import { visibleDocuments } from '../store/document.js';
import { documentShape, type ObjectShape, type ValueShape } from '../store/document-shape.js';
import { presentDocument } from '../reply/present-document.js';
import { Problems } from '../reply/problems.js';
import type { ValueCheck } from '../../collections/fields/constraints/check-value.js';
import { isJsonObject } from '../../collections/fields/field-type.js';

const MAX_EXAMPLES = 20;

/** The examples are the first ones only. */
export const VALIDATION_REPORT = object(
  { checked: WHOLE, violations: WHOLE, examples: arrayOf(object({ id: ID, message: TEXT })) },
  'ValidationReport',
);
type ValidationReport = TypeOf<typeof VALIDATION_REPORT>;

/**
 * Which documents are not what `collection`'s settings would have stored: wrong or missing or undeclared fields,
 * repeated unique values. Those in the trash count too, as a constraint is refused for them, but may repeat what others
 * have. Reads all of them, one at a time; changes nothing.
 */
export async function checkStoredDocuments(
  app: App,
  collection: Collection,
  stop: AbortSignal,
): Promise<ValidationReport> {
  const report: ValidationReport = { checked: 0, violations: 0, examples: [] };
  const shape = documentShape(asStored(collection));
  const unique = collection.mode === 'enforced' ? collection.fields.filter((field) => field.unique) : [];
  const together = collection.mode === 'enforced' ? (collection.uniques ?? []) : [];
  const seen = [...unique.map(({ name }) => [name]), ...together].map(readUnique).map(({ fields: names, where }) => ({
    names,
    where,
    values: new Set<string>(),
  }));
  const visible = visibleDocuments(true);
  for await (const document of documentStore(app, collection).find(visible).sort({ _id: 1 })) {
    stop.throwIfAborted();
    const { _id, ...fields } = presentDocument(document, false);
    const problems = new Problems();
    findViolations(shape, fields, problems);
    // Asked of every document, since it also remembers the values.
    const repeated = document.isDeleted ? null : findRepeat(collection, seen, fields);
    const message = problems.summary ?? repeated;
    report.checked++;
    if (message === null) continue;
    report.violations++;
    if (report.examples.length === MAX_EXAMPLES) continue;
    report.examples.push({ id: _id, message: document.isDeleted ? `in the trash: ${message}` : message });
  }
  return report;
}

interface SeenValues {
  names: readonly string[];
  where: Record<string, unknown>;
  values: Set<string>;
}

function findRepeat(
  collection: Collection,
  seen: readonly SeenValues[],
  value: Record<string, unknown>,
): string | null {
  let repeated: string | null = null;
  for (const { names, where, values } of seen) {
    if (Object.entries(where).some(([name, wanted]) => value[name] !== wanted)) continue;
    if (names.some((name) => value[name] === undefined || value[name] === null)) continue;
    const text = JSON.stringify(names.map((name) => comparedValue(collection, name, value[name])));
    if (values.has(text)) repeated ??= `${names.join(' and ')} must be unique: another document has the same value`;
    values.add(text);
  }
  return repeated;
}

/**
 * Notes what of a stored document is not what an insert would have stored: a text where a date belongs counts although
 * a client could send it, since lists compare stored values. `fields` are the document's own, without what the service
 * keeps.
 */
function findViolations(shape: ObjectShape, fields: Record<string, unknown>, problems: Problems): void {
  for (const field of shape.fields.values()) {
    const value = Object.hasOwn(fields, field.name) ? fields[field.name] : undefined;
    if (value === undefined || value === null) {
      if (field.required) problems.add('required', 'is required', field.name);
      continue;
    }
    problems.enter(field.name);
    findViolation(field.shape, value, problems);
    problems.leave();
  }
  if (shape.open) return;
  for (const name of Object.keys(fields)) {
    if (!shape.fields.has(name)) problems.add('unknown', 'is not a field of this collection', name);
  }
}

function findViolation(shape: ValueShape, value: unknown, problems: Problems): void {
  if (shape.type === 'any') return;
  if (shape.type === 'Object' && isJsonObject(value) && !(value instanceof Date)) {
    return findViolations(shape, value, problems);
  }
  if (shape.type === 'Array' && Array.isArray(value)) {
    for (let at = 0; at < value.length && !problems.full; at++) {
      problems.enter(at);
      findViolation(shape.items, value[at], problems);
      problems.leave();
    }
    return findBroken(shape.check, value, problems);
  }
  if (!isStoredForm(shape, value)) problems.add('type', `must be a ${shape.type}`);
  else if ('check' in shape) findBroken(shape.check, value, problems);
}

function findBroken(check: ValueCheck | null, value: unknown, problems: Problems): void {
  check?.find(value, problems.at(null), (rule, text) => problems.add(rule, text));
}

function isStoredForm(shape: ValueShape, value: unknown): boolean {
  if (shape.type === 'Date') return value instanceof Date;
  return 'store' in shape && shape.store(value) !== undefined;
}
