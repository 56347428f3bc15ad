import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict } from '../../errors.js';
import { isDuplicateKey } from '../../platform/database/database.js';
import type { Project } from '../projects/project.js';
import { checkFields } from './fields/check-fields.js';
import { checkIndexSpecs } from './indexes/check-index-specs.js';
import { checkExpire, checkRls } from './fields/check-settings.js';
import { documentsName, type Collection, requireCollectionName } from './collection.js';
import {
  declaredAccess,
  readDeclaredChanges,
  wholeDeclaration,
  type CollectionDeclaration,
} from './schema/collection-declaration.js';
import { listUnmet } from './schema/merge-declaration.js';
import { announceSets, ownSets } from './name-sets.js';
import { requireSoundReferences } from './references/reference.js';
import { CLOSED_ACCESS } from './rules/collection-rules.js';
import { requireSoundRules } from './rules/require-sound-rules.js';
import { collectionStore, forgetCollection } from './collection-store.js';
import { documentIndexes } from './indexes/document-indexes.js';

export interface NewCollection extends CollectionDeclaration {
  ifNotExists?: boolean;
}

export interface AddedCollection {
  collection: Collection;
  created: boolean;
  /** Differences between the request and the collection that was there already, one line each. */
  unmet: string[];
}

/**
 * Registers a collection: from the answer on its endpoint accepts requests. 400 for a bad name or field, 409
 * COLLECTION_EXISTS unless `ifNotExists`.
 */
export async function addCollection(app: App, project: Project, input: NewCollection): Promise<AddedCollection> {
  const collection = await readNewCollection(app, project, input);
  const existing = await collectionStore(app).findOne({ projectId: project._id, name: input.name });
  if (existing) return existingCollection(existing, input);
  await announceSets(app, null, collection);
  // Indexes first: a process that sees the record can rely on them. A crash in between leaves an empty stored
  // collection that nothing names.
  await app.db.createIndexes(documentsName(collection), documentIndexes(collection));
  try {
    await collectionStore(app).insertOne(collection);
  } catch (error) {
    await app.db.collection(documentsName(collection)).drop();
    if (!isDuplicateKey(error)) throw error;
    const winner = await collectionStore(app).findOne({ projectId: project._id, name: input.name });
    if (!winner) throw error;
    return existingCollection(winner, input);
  }
  forgetCollection(app, collection);
  return { collection, created: true, unmet: [] };
}

/** The collection that `addCollection` would register, checked; nothing is stored. */
export async function readNewCollection(app: App, project: Project, input: NewCollection): Promise<Collection> {
  requireCollectionName(input.name);
  const mode = input.mode ?? 'enforced';
  const { rls, rules, isPublic } = declaredAccess(input, CLOSED_ACCESS);
  const now = new Date(app.clock.now());
  const collection: Collection = {
    _id: new ObjectId(),
    projectId: project._id,
    name: input.name,
    mode,
    fields: checkFields(input.fields ?? [], { name: input.name, mode }),
    rls,
    ...(rules && { rules }),
    isPublic,
    indexes: input.indexes ?? [],
    ...(input.uniques && { uniques: input.uniques }),
    ...(input.expire && { expire: input.expire }),
    ...(input.changes && { changes: readDeclaredChanges(input.changes) }),
    version: 1,
    state: 'active',
    createdAt: now,
    updatedAt: now,
  };
  checkRls(collection);
  checkIndexSpecs(collection);
  checkExpire(collection);
  await requireSoundRules(app, null, collection);
  await requireSoundReferences(app, null, collection);
  const own = ownSets(collection);
  if (own.length > 0) collection.namedBy = own;
  return collection;
}

function existingCollection(existing: Collection, { ifNotExists, ...input }: NewCollection): AddedCollection {
  if (existing.state === 'dropping') {
    throw conflict(
      'COLLECTION_DROPPING',
      `"${input.name}" is still being dropped: drop it once more, or wait a moment, then add it again`,
    );
  }
  if (ifNotExists) {
    return { collection: existing, created: false, unmet: listUnmet(wholeDeclaration(existing), input) };
  }
  throw conflict('COLLECTION_EXISTS', `There is already a collection "${input.name}" in this project`);
}
