import { isDeepStrictEqual } from 'node:util';
import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, invalid } from '../../../errors.js';
import type { Collection } from '../collection.js';
import { collectionStore } from '../collection-store.js';
import { referencesOf, type Reference } from './reference.js';

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
