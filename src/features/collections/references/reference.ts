import type { App } from '../../../app.js';
import type { Collection } from '../collection.js';
import { listReferring, collectionStore } from '../collection-store.js';
import type { OnDelete } from '../fields/constraints/constraint.js';
import { isDeepStrictEqual } from 'node:util';
import type { ObjectId } from 'bson';
import { conflict, invalid } from '../../../errors.js';

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

/**
 * 400 INVALID_REFERENCE where what goes with one document would be held by another: documents that are trashed or
 * removed by `onDelete` cannot be ones that a reference restricts. `from` is null for a collection that is being
 * registered.
 */
export async function requireSoundReferences(app: App, from: Collection | null, to: Collection): Promise<void> {
  const textsOf = (collection: Collection): unknown[] =>
    referencesOf(collection).map(({ collection: _, ...own }) => own);
  if (from && isDeepStrictEqual(textsOf(from), textsOf(to))) return;
  if (referencesOf(to).length === 0 && !(await isReferredTo(app, to))) return;
  const all = [...(await listChecking(app, to.projectId)).filter(({ _id }) => !_id.equals(to._id)), to];
  const references = all.flatMap(referencesOf);
  for (const held of references.filter(({ onDelete }) => onDelete === 'restrict')) {
    const going = references.find(
      ({ collection, onDelete }) => collection.name === held.to && (onDelete === 'trash' || onDelete === 'remove'),
    );
    if (!going) continue;
    const message = `${nameOf(held)} cannot restrict: documents of "${held.to}" go with those of "${going.to}" (${nameOf(going)} is ${going.onDelete})`;
    throw invalid('INVALID_REFERENCE', message, { details: [{ field: held.field, rule: 'onDelete', message }] });
  }
}

const nameOf = ({ collection, field }: Reference): string => `${collection.name}.${field}`;

async function isReferredTo(app: App, { projectId, name }: Collection): Promise<boolean> {
  return (await listChecking(app, projectId)).flatMap(referencesOf).some(({ to }) => to === name);
}

/** 409 REFERRED_TO where references of another collection, or with `own` its own, are checked against this one. */
export async function requireUnreferred(app: App, { _id, projectId, name }: Collection, own = false): Promise<void> {
  const checking = (await listChecking(app, projectId)).filter((each) => own || !each._id.equals(_id));
  const reference = checking.flatMap(referencesOf).find(({ to }) => to === name);
  if (!reference) return;
  const message = `${nameOf(reference)} refers to "${name}" with check: change or drop that field first`;
  throw conflict('REFERRED_TO', message);
}

/** The collections of a project that check references, as they are stored now. */
function listChecking(app: App, projectId: ObjectId): Promise<Collection[]> {
  const isChecked = ['fields', 'fields.items'].map((path) => ({ [`${path}.check`]: true }));
  return collectionStore(app).find({ projectId, state: 'active', $or: isChecked }).toArray();
}
