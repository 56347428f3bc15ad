import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { isDuplicateKey } from '../../platform/database/database.js';
import { checkIndexSpecs } from './indexes/check-index-specs.js';
import { beginFolding, endFolding, leftFolding } from './change-folding.js';
import { checkRls } from './fields/check-rls.js';
import type { Collection } from './collection.js';
import { collectionStore, forgetCollection, requireStoredCollection } from './collection-store.js';
import { addIndexes, applyIndexes } from './indexes/document-indexes.js';
import { explainDuplicates } from './indexes/explain-duplicates.js';
import { INDEX_REFUSALS, indexRefused, requireConstraints } from './stored-fit.js';
import { requireSoundReferences } from './references/require-sound-references.js';
import { announceSets, settleSets } from './name-sets.js';
import { requireSoundRules } from './rules/require-sound-rules.js';
import { checkUsersContract } from './users-collection.js';

export type CollectionSettings = Pick<
  Collection,
  'mode' | 'fields' | 'rls' | 'rules' | 'isPublic' | 'indexes' | 'uniques'
>;

export interface ChangeOptions {
  /** New constraints are kept by later writes: stored documents that break them stay as they are. */
  forNewWrites?: boolean;
}

/**
 * Changes a collection's settings by compare-and-swap on its version: two changes at once both take effect, in some
 * order. New indexes exist before the record asks for them and old ones go after, so a crash in between costs nothing
 * but an index too many. 409 with the values that stand in the way when stored documents keep a field from being
 * unique, and 409 CONSTRAINT_MISFITS when they break a new constraint that is not `forNewWrites` only; then nothing has
 * changed. Stored documents follow fields that become `@nocase`, or cease to be.
 */
export async function changeCollection(
  app: App,
  projectId: ObjectId,
  name: string,
  change: (current: Collection) => Partial<CollectionSettings> | Promise<Partial<CollectionSettings>>,
  { forNewWrites = false }: ChangeOptions = {},
): Promise<Collection> {
  for (;;) {
    const current = await requireStoredCollection(app, projectId, name);
    const changed: Collection = { ...current, ...(await change(current)) };
    await requireSoundChange(app, current, changed);
    if (!forNewWrites) await requireConstraints(app, current, changed);
    const ready = await beginFolding(app, current, changed);
    if (!ready) continue;
    await buildIndexes(app, ready, changed);
    await announceSets(app, current, changed);
    const { mode, fields, rls, rules = null, isPublic, indexes, uniques = [] } = changed;
    const folding = leftFolding(ready, changed);
    const saved = await collectionStore(app).findOneAndUpdate(
      { _id: ready._id, version: ready.version, state: 'active' },
      {
        $set: { mode, fields, rls, rules, isPublic, indexes, uniques, folding, updatedAt: new Date(app.clock.now()) },
        $inc: { version: 1 },
      },
      { returnDocument: 'after' },
    );
    if (!saved) continue;
    forgetCollection(app, saved);
    await settleIndexes(app, saved);
    if (current.rules || rules) await settleSets(app, saved);
    await endFolding(app, saved);
    return saved;
  }
}

/** Refuses settings that no collection can have, or that other collections do not admit. Changes nothing. */
export async function requireSoundChange(app: App, current: Collection, changed: Collection): Promise<void> {
  checkRls(changed);
  checkIndexSpecs(changed);
  checkUsersContract(changed);
  await requireSoundRules(app, current, changed);
  await requireSoundReferences(app, current, changed);
}

/**
 * Indexes that the record no longer asks for go; again, when another change was saved since, whose new ones would
 * have gone with them.
 */
async function settleIndexes(app: App, saved: Collection): Promise<void> {
  for (let latest: Collection | null = saved; latest;) {
    await applyIndexes(app, latest);
    const version: number = latest.version;
    const newer = { _id: saved._id, version: { $gt: version }, state: 'active' as const };
    latest = await collectionStore(app).findOne(newer);
  }
}

/** `ready` is the record as it stands. */
async function buildIndexes(app: App, ready: Collection, changed: Collection): Promise<void> {
  try {
    await addIndexes(app, changed);
  } catch (error) {
    const reason = INDEX_REFUSALS.get((error as { code?: unknown }).code);
    if (reason === undefined && !isDuplicateKey(error)) throw error;
    await settleIndexes(app, ready);
    const refusal = isDuplicateKey(error)
      ? await explainDuplicates(app, changed, error)
      : indexRefused(changed, reason!, error);
    await endFolding(app, ready);
    throw refusal;
  }
}
