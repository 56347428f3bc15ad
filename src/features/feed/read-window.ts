import type { Document } from 'bson';
import { keysetFilters, allOf } from '../documents/query/keyset-filter.js';
import type { SortKey } from '../documents/query/sort-key.js';
import { loadMatchers } from '../../platform/database/database.js';
import { mapInTurns } from '../../scheduler.js';
import { decodeStored } from '../documents/reply/encode-document.js';
import { listError } from '../documents/reply/query-errors.js';
import { readRows, type ReplySize } from '../documents/reply/reply-size.js';
import { documentStore } from '../documents/store/document-store.js';
import { visibleDocuments } from '../documents/store/document.js';
import type { FeedPosition } from './feed-cursor.js';
import { populateChanges, referringFilter, type RefNews } from './populating.js';
import { readNewsOf, readPage, type FeedPage, type Following } from './read-page.js';
import { findSameView, readSetView } from './set-view.js';
import { digestOf, entryOf, type WindowPart } from './window-order.js';

/** The page behind a position, of a window or of changes. */
export async function readNews(...asked: Parameters<typeof readPage>): Promise<FeedPage> {
  const [following, from, size] = asked;
  const { app, query, refs } = following;
  const page = await (query.window ? readWindow(following, from, size) : readPage(...asked));
  return refs ? { ...page, items: await populateChanges(app, refs, page.items, query, size) } : page;
}

/**
 * The page of a window: all of it where it is another one than at the cursor, and nothing otherwise. It needs no log,
 * so its cursor does not expire when that is trimmed.
 */
async function readWindow(following: Following, from: FeedPosition, size: ReplySize): Promise<FeedPage> {
  const { app, query, sets, refs, log } = following;
  const { limit } = query.window!;
  const news = refs && (await readNewsOf(refs, from));
  // Before the documents are read: what changes from now on comes behind it.
  const { epoch, seq } = log.position?.() ?? (await log.begin());
  const at = sets && {
    ...from,
    sets: sets.sets.map((set, n) => set.log.position?.() ?? sets.at[n]!),
    until: undefined,
  };
  const view = at && (findSameView(sets, following.readable, at) ?? (await readSetView(app, sets, at)));
  const readable = view ? view.readable : following.readable;
  const window = await readPart(following, { readable, after: null, limit }, size);
  const shown = digestOf(window.entries);
  const isReset = from.window !== undefined && (from.window !== shown || (await refersToNews(following, news, window)));
  return {
    ...{ readable, window, isReset, more: false },
    // Who asks for what comes from now on is not shown what is there.
    items: isReset || from.isListing ? window.items : [],
    position: {
      ...{ epoch, seq, shown: null, isListing: false, window: shown },
      ...(news && { refs: news.map(({ to }) => to) }),
      ...(view && {
        sets: view.sets.map(({ epoch: ofSet, seq: known, told }) => ({ epoch: ofSet, seq: told ?? known })),
      }),
    },
  };
}

/** True where a document of the window refers to one that has changed. */
async function refersToNews(
  { refs }: Following,
  news: readonly RefNews[] | null,
  { items }: WindowPart,
): Promise<boolean> {
  const referring = refs && news && referringFilter(refs.collections, news);
  if (!referring) return false;
  const matcher = (await loadMatchers())(referring);
  return items.some(({ document }) => matcher.matches(document!));
}

/** True where a window cannot be another one than at the cursor, as nothing has changed since. */
export function isSameWindow({ log, sets, refs }: Following, from: FeedPosition): boolean {
  const end = log.position?.();
  return Boolean(from.window) && !sets && !refs && end?.epoch === from.epoch && end.seq === from.seq;
}

/** A part of a window under these rules: from the beginning, or behind a document. */
export async function readPart(
  { app, collection, query, signal }: Following,
  { readable, after, limit }: { readable: Document | null; after: readonly SortKey[] | null; limit: number },
  size: ReplySize,
): Promise<WindowPart> {
  const { sort, order } = query.window!;
  const filter = allOf([...(readable ? [readable] : []), visibleDocuments(), ...query.conditions]);
  const steps = after ? keysetFilters(sort, after).map((step) => allOf([filter, step])) : [filter];
  const rows: Buffer[] = [];
  for (const step of steps) {
    if (rows.length === limit) break;
    const cursor = documentStore(app, collection)
      .find(step, { raw: true, signal, batchBytes: size.batchBytes })
      .sort(order)
      .limit(limit - rows.length)
      .batchSize(limit + 1)
      .maxTimeMS(app.config.queryTimeoutMs);
    try {
      rows.push(...(await readRows(cursor, size)));
    } catch (error) {
      throw listError(error, signal);
    }
  }
  const tenant = { project: collection.projectId.toHexString(), address: '' };
  const entries = await mapInTurns(rows, (row) => entryOf(decodeStored(row), sort), tenant);
  const items = entries.map(({ id, version }, n) => ({ id, at: new Date(version), document: rows[n]! }));
  return { entries, items, isEnd: rows.length < limit };
}
