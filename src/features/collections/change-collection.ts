import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { isDuplicateKey } from '../../platform/database/database.js';
import { checkIndexSpecs } from './indexes/check-index-specs.js';
import { checkRls, checkExpire } from './fields/check-settings.js';
import type { Collection, Rls, AccessRules } from './collection.js';
import { collectionStore, requireStoredCollection, saveCollection } from './collection-store.js';
import { addIndexes, applyIndexes } from './indexes/document-indexes.js';
import { explainDuplicates } from './indexes/explain-duplicates.js';
import { INDEX_ERRORS, indexRefused, requireConstraints } from './stored-violations.js';
import { requireSoundReferences } from './references/reference.js';
import { announceSets, applySets } from './name-sets.js';
import { requireSoundRules, requireKnownNames } from './rules/require-sound-rules.js';
import { checkUsersContract } from './users-collection.js';
import { isServerOnly, namedSets, PUBLIC_ACCESS, type CollectionAccess } from './rules/collection-rules.js';
import { conflict } from '../../errors.js';
import { listLoosenedAccess } from './rules/compare-rules.js';
import { withRules } from './rules/review-rules.js';
import { setTimeout as wait } from 'node:timers/promises';
import { addsDefaults, enqueueRenewal, renewDocuments } from './renew-documents.js';
import { foldedNames, nocaseFields } from './fields/nocase.js';

/** Every process notices a changed record within this. */
const NOTICED_MS = 1_000;

/** Fields that are `@nocase` in `to` and not in `from`. */
const becoming = (from: Collection, to: Collection): string[] =>
  nocaseFields(to).filter((name) => !nocaseFields(from).includes(name));

/**
 * Makes the stored documents ready for fields that become `@nocase` with `changed`: writers everywhere keep the folded
 * values, then those that are stored get theirs. Answers the record as it is now, or null if another writer has
 * changed it.
 */
async function beginFolding(app: App, current: Collection, changed: Collection): Promise<Collection | null> {
  const names = becoming(current, changed);
  if (names.length === 0) return current;
  const folding = [...new Set([...(current.folding ?? []), ...names])];
  const noted = await saveCollection(app, current, { folding });
  if (!noted) return null;
  await enqueueRenewal(app, noted);
  await wait(NOTICED_MS);
  await renewDocuments(app, noted);
  return noted;
}

/** Fields whose folded values are no longer needed once `changed` is saved; writers may still store them. */
function leftFolding(ready: Collection, changed: Collection): string[] {
  const kept = nocaseFields(changed);
  return foldedNames(ready).filter((name) => !kept.includes(name));
}

/**
 * Ends the keeping of folded values that no comparison uses, once no process uses them; not if another writer
 * has changed the record since.
 */
async function endFolding(app: App, saved: Collection): Promise<void> {
  if (!saved.folding?.length) return;
  await enqueueRenewal(app, saved);
  await wait(NOTICED_MS);
  const ended = await saveCollection(app, saved, { folding: [] });
  if (ended) await renewDocuments(app, ended);
}

export type CollectionSettings = Pick<
  Collection,
  'mode' | 'fields' | 'rls' | 'rules' | 'isPublic' | 'indexes' | 'uniques' | 'expire'
>;

export interface ChangeOptions {
  /** New constraints are kept by later writes: stored documents that break them stay as they are. */
  forNewWrites?: boolean;
}

/**
 * Changes a collection's settings by compare-and-swap on its version: two changes at once both take effect, in some
 * order. New indexes exist before the record asks for them and old ones go after, so a crash in between costs nothing
 * but an index too many. 409 with the values that stand in the way when stored documents keep a field from being
 * unique, and 409 CONSTRAINT_VIOLATIONS when they break a new constraint that is not `forNewWrites` only; then nothing
 * has changed. Stored documents follow fields that become `@nocase`, or cease to be, and get defaults that they lack.
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
    const { mode, fields, rls, rules = null, isPublic, indexes, uniques = [], expire = null } = changed;
    const folding = leftFolding(ready, changed);
    const settings = { mode, fields, rls, rules, isPublic, indexes, uniques, expire, folding };
    const saved = await saveCollection(app, ready, settings);
    if (!saved) continue;
    await reconcileIndexes(app, saved);
    if ([current, saved].some((each) => namedSets(each).length > 0)) await applySets(app, saved);
    await endFolding(app, saved);
    if (addsDefaults(current, saved)) {
      await enqueueRenewal(app, saved);
      await renewDocuments(app, saved);
    }
    return saved;
  }
}

/** Refuses settings that no collection can have, or that other collections do not admit. Changes nothing. */
export async function requireSoundChange(app: App, current: Collection, changed: Collection): Promise<void> {
  checkRls(changed);
  checkIndexSpecs(changed);
  checkExpire(changed);
  checkUsersContract(changed);
  await requireSoundRules(app, current, changed);
  await requireSoundReferences(app, current, changed);
}

/**
 * Indexes that the record no longer asks for go; again, when another change was saved since, whose new ones would
 * have gone with them.
 */
async function reconcileIndexes(app: App, saved: Collection): Promise<void> {
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
    const reason = INDEX_ERRORS.get((error as { code?: unknown }).code);
    if (reason === undefined && !isDuplicateKey(error)) throw error;
    await reconcileIndexes(app, ready);
    const refusal = isDuplicateKey(error)
      ? await explainDuplicates(app, changed, error)
      : indexRefused(changed, reason!, error);
    await endFolding(app, ready);
    throw refusal;
  }
}

/** The access of a collection with this row-level security; a collection that had it is public without (null). */
export function withRls(current: CollectionAccess, rls: Rls | null): CollectionAccess {
  if (!rls) return current.rls ? PUBLIC_ACCESS : accessOf(current);
  return { rls, rules: isServerOnly(current) ? null : current.rules, isPublic: false };
}

function accessOf({ rls, rules, isPublic }: CollectionAccess): CollectionAccess {
  return { rls, rules, isPublic };
}

/**
 * Switches row-level security on, to another mode or off (null). Documents without an owner stay, readable by the
 * secret key only while private. 400 INVALID_RULES while rules admit any caller.
 */
export function setRls(app: App, projectId: ObjectId, name: string, rls: Rls | null): Promise<Collection> {
  return changeCollection(app, projectId, name, (current) => withRls(current, rls));
}

/**
 * What a collection would be with these rules, and what they loosen, one line each. 400 for a rule with a mistake: that
 * is reported before asking to confirm loosened rules.
 */
export async function planRules(
  app: App,
  current: Collection,
  rules: AccessRules | null,
): Promise<{ next: CollectionAccess; loosened: string[] }> {
  const next = withRules(current, rules);
  await requireKnownNames(app, next);
  const { rls, isPublic } = next;
  return { next: { rules: next.rules ?? null, rls, isPublic }, loosened: listLoosenedAccess(current, next) };
}

/**
 * Gives a collection rules instead of those that it has, row-level security included; null for public access. 409
 * CONFIRMATION_REQUIRED if the change grants more access and is not confirmed; then `prove` rejects callers who may
 * not do that.
 */
export function setRules(
  app: App,
  projectId: ObjectId,
  name: string,
  rules: AccessRules | null,
  { agreed, prove }: { agreed: boolean; prove?: () => Promise<void> },
): Promise<Collection> {
  return changeCollection(app, projectId, name, async (current) => {
    const { next, loosened } = await planRules(app, current, rules);
    if (loosened.length > 0 && !agreed) throw unconfirmed(loosened);
    if (loosened.length > 0) await prove?.();
    return next;
  });
}

/** The error for loosened rules without a confirmation. */
export function unconfirmed(loosened: readonly string[]): Error {
  const message = `Nothing was changed. This loosens ${loosened.join('; ')}: repeat it with ?confirm=<name of the project> to agree`;
  return conflict('CONFIRMATION_REQUIRED', message);
}
