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
  /** Fields in which the referred document holds what the one that refers does. */
  same: readonly string[];
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
    const { check, ref: to, onDelete, same = [] } = isList ? (field.items ?? { check: false }) : field;
    return check && to !== undefined
      ? [{ collection, field: field.name, isList, isRequired: field.required === true, to, onDelete, same }]
      : [];
  });
}

/** The references to documents of a collection that say what becomes of those that refer; at most half a second old. */
export async function findReferences(app: App, { projectId, name }: Collection): Promise<Reference[]> {
  const referring = await listReferring(app, projectId);
  return referring.flatMap(referencesOf).filter(({ to, onDelete }) => to === name && onDelete !== undefined);
}

/** What a value must be, as the rest of a sentence about the field; the same for an id that is not there. */
export function referenceText({ to, same }: Pick<Reference, 'to' | 'same'>): string {
  const common = same.length > 0 ? ` with the same ${same.join(' and ')}` : '';
  return `must be the id of a document in "${to}"${common}`;
}
