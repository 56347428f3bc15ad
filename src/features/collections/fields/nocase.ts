import type { Collection } from '../collection.js';
import { HIDDEN_FIELD } from './field.js';

/**
 * Where a document keeps, beside the service's other notes, the folded values of its `@nocase` fields by their names:
 * what filters, sorts and indexes of these fields compare (decision 58).
 */
export const FOLDED = `${HIDDEN_FIELD}.nocase` as const;

type Folding = Pick<Collection, 'mode' | 'fields'>;

/** A text without regard to case: in lower case and composed, both forms of the Greek sigma being one letter. */
export function foldText(text: string): string {
  return text.normalize('NFC').toLowerCase().replaceAll('ς', 'σ').normalize('NFC');
}

/** The stored companion of a value. What is no text, as in a document from before the schema, is independent. */
export function foldValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => (typeof item === 'string' ? foldText(item) : item));
  return typeof value === 'string' ? foldText(value) : value;
}

/** The fields that are compared without regard to case; as uniques they are so where the schema is enforced. */
export function nocaseFields({ mode, fields }: Folding): string[] {
  return mode === 'enforced' ? fields.filter(({ nocase }) => nocase).map(({ name }) => name) : [];
}

/** The stored path by which a field is compared: its own, or that of its folded value. */
export function comparedPath(collection: Folding, path: string): string {
  return nocaseFields(collection).includes(path) ? foldedPath(path) : path;
}

/** What of a field's value is compared. */
export function comparedValue(collection: Folding, name: string, value: unknown): unknown {
  return comparedPath(collection, name) === name ? value : foldValue(value);
}

function foldedPath(name: string): string {
  return `${FOLDED}.${name}`;
}

/** The field that a stored path is of: the reverse of comparedPath. */
export function namedPath(path: string): string {
  return path.startsWith(`${FOLDED}.`) ? path.slice(FOLDED.length + 1) : path;
}

/** The fields whose folded values writers keep: also those that are about to be compared by them, or were just now. */
export function foldedNames(collection: Folding & Pick<Collection, 'folding'>): string[] {
  return [...new Set([...nocaseFields(collection), ...(collection.folding ?? [])])];
}

const known = new WeakMap<Collection, readonly string[]>();

function foldedOf(collection: Collection): readonly string[] {
  let names = known.get(collection);
  if (!names) known.set(collection, (names = foldedNames(collection)));
  return names;
}

/** The new document with the folded values of its fields. */
export function withFolded<T extends Record<string, unknown>>(collection: Collection, document: T): T {
  const names = foldedOf(collection);
  if (names.length === 0) return document;
  const named = names.filter((name) => document[name] !== undefined);
  if (named.length === 0) return document;
  const nocase = Object.fromEntries(named.map((name) => [name, foldValue(document[name])]));
  return { ...document, [HIDDEN_FIELD]: { ...(document[HIDDEN_FIELD] as object | undefined), nocase } };
}

/** A stored document after a change, with the folded values of the fields that have changed. */
export function foldChanged<T extends Record<string, unknown>>(collection: Collection, before: T, document: T): T {
  const names = foldedOf(collection);
  if (names.length === 0) return document;
  const changed = names.filter((name) => document[name] !== before[name]);
  if (changed.length === 0) return document;
  const notes = document[HIDDEN_FIELD] as { nocase?: Record<string, unknown> } | undefined;
  const nocase = { ...notes?.nocase };
  for (const name of changed) {
    if (document[name] === undefined) delete nocase[name];
    else nocase[name] = foldValue(document[name]);
  }
  return { ...document, [HIDDEN_FIELD]: { ...notes, nocase } };
}
