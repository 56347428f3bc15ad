import { setTimeout as wait } from 'node:timers/promises';
import type { App } from '../../app.js';
import type { Collection } from './collection.js';
import { collectionStore, forgetCollection } from './collection-store.js';
import { foldedNames, nocaseFields } from './fields/nocase.js';
import { enqueueFolding } from './fold-documents.job.js';
import { foldDocuments } from './indexes/fold-documents.js';

/** Every process notices a changed record within this. */
const NOTICED_MS = 1_000;

/** Fields that are `@nocase` in `to` and not in `from`. */
const becoming = (from: Collection, to: Collection): string[] =>
  nocaseFields(to).filter((name) => !nocaseFields(from).includes(name));

/**
 * Makes the stored documents ready for fields that become `@nocase` with `changed`: writers everywhere keep the folded
 * values, then those that are stored get theirs. Answers the record as it is now, or null when somebody else has
 * changed it.
 */
export async function beginFolding(app: App, current: Collection, changed: Collection): Promise<Collection | null> {
  const names = becoming(current, changed);
  if (names.length === 0) return current;
  const folding = [...new Set([...(current.folding ?? []), ...names])];
  const noted = await noteFolding(app, current, folding);
  if (!noted) return null;
  await enqueueFolding(app, noted);
  await wait(NOTICED_MS);
  await foldDocuments(app, noted);
  return noted;
}

/** The fields whose folded values nobody asks for once `changed` is saved, while writers may still keep them. */
export function leftFolding(ready: Collection, changed: Collection): string[] {
  const kept = nocaseFields(changed);
  return foldedNames(ready).filter((name) => !kept.includes(name));
}

/**
 * Ends the keeping of folded values that nobody compares by, once no process does any more; not where somebody else
 * has changed the record since.
 */
export async function endFolding(app: App, saved: Collection): Promise<void> {
  if (!saved.folding?.length) return;
  await enqueueFolding(app, saved);
  await wait(NOTICED_MS);
  const ended = await noteFolding(app, saved, []);
  if (ended) await foldDocuments(app, ended);
}

async function noteFolding(app: App, { _id, version }: Collection, folding: string[]): Promise<Collection | null> {
  const noted = await collectionStore(app).findOneAndUpdate(
    { _id, version, state: 'active' },
    { $set: { folding }, $inc: { version: 1 } },
    { returnDocument: 'after' },
  );
  if (noted) forgetCollection(app, noted);
  return noted;
}
