import type { Collection } from '../../collections/collection.js';
import { HIDDEN_FIELD, SYSTEM_FIELDS, UNSAFE_NAMES, type FieldShape } from '../../collections/fields/field.js';

/**
 * The target of a path in a collection's documents: `id` is the document's own identifier; `any` is content that
 * nothing declares, in flexible collections or below an Object or Array without declared content. A declared field that
 * is not `firm` may hold anything, because its collection is flexible.
 */
export type PathTarget = { kind: 'id' } | { kind: 'declared'; shape: FieldShape; firm: boolean } | { kind: 'any' };

const FIELD_PATH = /^[A-Za-z_][\w-]*(\.[\w-]+)*$/;
const MAX_PATH_PARTS = 32;

/**
 * True for text that can be a path of a document: no operator, no name that means something else, none of the service's
 * own notes.
 */
export function isFieldPath(path: string): boolean {
  if (!FIELD_PATH.test(path)) return false;
  const parts = path.split('.');
  return parts.length <= MAX_PATH_PARTS && parts[0] !== HIDDEN_FIELD && !parts.some((part) => UNSAFE_NAMES.has(part));
}

/** The target of a path, or null when an enforced collection has no such field. The path must pass isFieldPath. */
export function findField(collection: Collection, path: string): PathTarget | null {
  const [root, ...rest] = path.split('.') as [string, ...string[]];
  const system = findSystemField(collection, root);
  if (system) return rest.length === 0 ? system : null;
  const flexible = collection.mode === 'flexible';
  const declared = collection.fields.find((field) => field.name === root);
  const found = declared ? followPath(declared, rest) : null;
  if (found) return found === 'any' ? { kind: 'any' } : { kind: 'declared', shape: found, firm: !flexible };
  return flexible ? { kind: 'any' } : null;
}

/** True when the schema declares exactly this path, which then is a field even where its name ends like an operator. */
export function isDeclaredPath(collection: Collection, path: string): boolean {
  return isFieldPath(path) && findField(collection, path)?.kind === 'declared';
}

function findSystemField(collection: Collection, root: string): PathTarget | null {
  if (root === '_id') return { kind: 'id' };
  if (root === 'isDeleted') return firm('Boolean');
  if ((SYSTEM_FIELDS as readonly string[]).includes(root)) return firm('Date');
  const isOwner = root === collection.rls?.ownerField;
  return isOwner && !collection.fields.some(({ name }) => name === root) ? firm('String') : null;
}

function firm(type: FieldShape['type']): PathTarget {
  return { kind: 'declared', shape: { type }, firm: true };
}

/** Into Object fields by name, into Array items by position or, as the database does, straight through them. */
function followPath(shape: FieldShape, rest: readonly string[]): FieldShape | 'any' | null {
  const [part, ...deeper] = rest;
  if (part === undefined) return shape;
  if (shape.type === 'Object') {
    if (!shape.fields) return 'any';
    const field = shape.fields.find(({ name }) => name === part);
    return field ? followPath(field, deeper) : null;
  }
  if (shape.type === 'Array') {
    if (!shape.items) return 'any';
    return followPath(shape.items, /^\d+$/.test(part) ? deeper : rest);
  }
  return null;
}
