import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict, invalid, missing, forbidden } from '../../errors.js';
import { changeCollection, type ChangeOptions } from './change-collection.js';
import { checkFields } from './fields/check-fields.js';
import { type Collection, type CollectionMode, requireCollectionName } from './collection.js';
import type { Field } from './fields/field.js';
import type { Expire } from './fields/expire.js';
import type { Unique } from './fields/unique.js';
import { isDuplicateKey } from '../../platform/database/database.js';
import { requireUnreferred } from './references/reference.js';
import { requireUnnamed } from './rules/require-sound-rules.js';
import { collectionNotFound, collectionStore, forgetCollection } from './collection-store.js';
import { USERS } from './users-collection.js';

export interface CollectionEdit {
  addFields?: readonly Field[];
  /** Replace the declarations of fields that are there. */
  setFields?: readonly Field[];
  dropFields?: readonly string[];
  mode?: CollectionMode;
  /** Replaces the requested indexes; an empty list removes them. */
  indexes?: string[];
  /** Replaces what is unique together. */
  uniques?: Unique[];
  /** When documents go by themselves; null: never. */
  expire?: Expire | null;
}

/**
 * Changes the schema of a collection; stored documents are left as they are. 404 for a field that is not there, 409 for
 * one that is there already, 409 CONSTRAINT_VIOLATIONS for a constraint that stored documents break.
 */
export function editCollection(
  app: App,
  projectId: ObjectId,
  name: string,
  edit: CollectionEdit,
  options: ChangeOptions = {},
): Promise<Collection> {
  return changeCollection(app, projectId, name, (current) => applyEdit(current, edit), options);
}

/** A collection's settings after an edit. Pure; refuses what editCollection refuses. */
export function applyEdit(
  current: Pick<Collection, 'name' | 'mode' | 'fields' | 'indexes' | 'uniques' | 'expire'>,
  edit: CollectionEdit,
): Pick<Collection, 'mode' | 'fields' | 'indexes' | 'uniques' | 'expire'> {
  const { addFields = [], setFields = [], dropFields = [], mode = current.mode, indexes = current.indexes } = edit;
  const { uniques = current.uniques, expire = current.expire } = edit;
  const listed = addFields.length + setFields.length + dropFields.length;
  if (
    listed === 0 &&
    edit.mode === undefined &&
    edit.indexes === undefined &&
    !edit.uniques &&
    edit.expire === undefined
  ) {
    throw invalid('INVALID_BODY', 'There is nothing to change');
  }
  const fields = new Map(current.fields.map((field) => [field.name, field]));
  for (const name of dropFields) {
    if (!fields.delete(name)) throw missing('FIELD_NOT_FOUND', `${current.name} has no field "${name}"`);
  }
  for (const field of addFields) {
    if (fields.has(field.name)) {
      throw conflict('FIELD_EXISTS', `${current.name} has a field "${field.name}" already`);
    }
    fields.set(field.name, field);
  }
  for (const field of setFields) {
    if (!fields.has(field.name)) {
      throw missing('FIELD_NOT_FOUND', `${current.name} has no field "${field.name}"`);
    }
    fields.set(field.name, field);
  }
  return { mode, fields: checkFields([...fields.values()], { name: current.name, mode }), indexes, uniques, expire };
}

/**
 * Gives a collection another name by one write; its documents stay where they are. 404, 409 when the name is taken or
 * rules name it, 403 for `users`.
 */
export async function renameCollection(
  app: App,
  projectId: ObjectId,
  name: string,
  newName: string,
): Promise<Collection> {
  if (name === USERS) throw forbidden('USERS_BLOCKED', 'The users collection cannot be renamed');
  requireCollectionName(newName);
  const current = await collectionStore(app).findOne({ projectId, name, state: 'active' });
  if (current) {
    await requireUnnamed(app, current, true);
    await requireUnreferred(app, current, true);
  }
  try {
    const renamed = await collectionStore(app).findOneAndUpdate(
      { projectId, name, state: 'active' },
      { $set: { name: newName, updatedAt: new Date(app.clock.now()) }, $inc: { version: 1 } },
      { returnDocument: 'after' },
    );
    if (!renamed) throw collectionNotFound(name);
    forgetCollection(app, { projectId, name });
    return renamed;
  } catch (error) {
    if (isDuplicateKey(error)) {
      throw conflict('COLLECTION_EXISTS', `There is already a collection "${newName}" in this project`);
    }
    throw error;
  }
}
