import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { Collection } from '../../collections/collection.js';
import { mayHide, readSeries, shownBy, type KnownSeries } from '../../collections/indexes/insert-series.js';
import { visibleDocuments } from './document.js';

type Filter = Record<string, unknown>;

/** The age of a remembered record, like that of others that every request needs: a restore shows within it. */
const KNOWN_MS = 1_000;
const MAX_KNOWN = 10_000;

/**
 * visibleDocuments without those of bulk inserts that do not stand at this moment (decision 4). Reads of many
 * documents ask for it before each read. A promise only when it takes time.
 */
export function findVisible(app: App, { _id }: Collection, includeDeleted = false): Promise<Filter> | Filter {
  const visible = visibleDocuments(includeDeleted);
  const hides = mayHide(app);
  return hides === false ? visible : withoutHidden(app, _id, visible, hides);
}

async function withoutHidden(
  app: App,
  collectionId: ObjectId,
  visible: Filter,
  hides: true | Promise<boolean>,
): Promise<Filter> {
  return (await hides) ? { ...visible, ...shownBy(await readSeries(app, collectionId)) } : visible;
}

/**
 * The answer of `run` about a single document, null when it matches none; `run` is given what its filter must leave
 * out. A batch that stood once stands for good, so that this costs a read of the series only for documents that are not
 * there or very young.
 */
export function matchShown<T>(
  app: App,
  collection: Collection,
  run: (shown: Filter) => Promise<T | null>,
): Promise<T | null> {
  const hides = mayHide(app);
  return hides === false ? run({}) : matchHiding(app, collection, hides, run);
}

async function matchHiding<T>(
  app: App,
  { _id }: Collection,
  hides: true | Promise<boolean>,
  run: (shown: Filter) => Promise<T | null>,
): Promise<T | null> {
  if (!(await hides)) return run({});
  const known = recall(app, _id);
  if (known) {
    const found = await run(shownBy(known));
    if (found !== null) return found;
  }
  const fresh = await readSeries(app, _id);
  remember(app, _id, fresh);
  const isSame = known?.next === fresh.next && known.hidden.join() === fresh.hidden.join();
  return isSame ? null : run(shownBy(fresh));
}

const remembered = new WeakMap<App['db'], Map<string, KnownSeries & { until: number }>>();

function recall(app: App, collectionId: ObjectId): KnownSeries | null {
  const known = remembered.get(app.db)?.get(collectionId.toHexString());
  return known && performance.now() < known.until ? known : null;
}

function remember(app: App, collectionId: ObjectId, known: KnownSeries): void {
  let all = remembered.get(app.db);
  if (!all || all.size >= MAX_KNOWN) remembered.set(app.db, (all = new Map<string, KnownSeries & { until: number }>()));
  all.set(collectionId.toHexString(), { ...known, until: performance.now() + KNOWN_MS });
}
