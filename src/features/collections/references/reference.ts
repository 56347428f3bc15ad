import type { App } from '../../../app.js';
import type { Collection } from '../collection.js';
import { listReferring } from '../collection-store.js';
import type { OnDelete } from '../fields/constraints/constraint.js';

/** A field whose documents are checked to be there (writes.md 3). */
export interface Reference {
  /** The collection whose field it is. */
  collection: Collection;
  field: string;
  isList: boolean;
  isRequired: boolean;
  /** Name of the collection that is referred to. */
  to: string;
  onDelete: OnDelete | undefined;
}

/** The checked references of a collection; a flexible one checks none, as it checks no field. */
export function referencesOf(collection: Collection): readonly Reference[] {
  let references = known.get(collection);
  if (!references) {
    references = readReferences(collection);
    known.set(collection, references);
  }
  return references;
}

const known = new WeakMap<Collection, readonly Reference[]>();

function readReferences(collection: Collection): Reference[] {
  if (collection.mode !== 'enforced') return [];
  return collection.fields.flatMap((field) => {
    const isList = field.type === 'Array';
    const { check, ref: to, onDelete } = isList ? (field.items ?? { check: false }) : field;
    return check && to !== undefined
      ? [{ collection, field: field.name, isList, isRequired: field.required === true, to, onDelete }]
      : [];
  });
}

/** The references to documents of a collection that say what becomes of those that refer; at most half a second old. */
export async function findReferences(app: App, { projectId, name }: Collection): Promise<Reference[]> {
  const referring = await listReferring(app, projectId);
  return referring.flatMap(referencesOf).filter(({ to, onDelete }) => to === name && onDelete !== undefined);
}
