import type { App } from '../../app.js';
import type { Collection } from '../collections/collection.js';
import { EJSON, type Document } from 'bson';
import { AppError } from '../../errors.js';
import { visibilityNeedsAccount } from '../access/access-rules.js';
import type { Caller } from '../access/caller.js';
import { NOTHING } from '../access/rules/compile-rule.js';
import type { ChangeLog, FoundChange, LogPosition } from '../changes/change-log.js';
import { openChangeLog } from '../changes/open-change-log.js';
import { requireChanges } from '../changes/change-log.js';
import { rulesOf } from '../collections/rules/collection-rules.js';
import { openPopulated, populateFrom, type PopulatedCollection } from '../documents/read/populate-documents.js';
import { decodeStored } from '../documents/reply/encode-document.js';
import { presentDocument } from '../documents/reply/present-document.js';
import { redactRow } from '../documents/reply/redact-fields.js';
import type { ReplySize } from '../documents/reply/reply-size.js';
import { selectFields, widest } from '../documents/reply/select-fields.js';
import { cursorExpired } from './feed-cursor.js';
import { digest, type FeedQuery, type PopulatedChange } from './feed-query.js';

/** A collection that followed documents refer to, and the log of its changes. */
export interface FollowedRef extends PopulatedCollection {
  log: ChangeLog;
}

/** What is put in the place of ids. */
export interface FollowedRefs {
  collections: readonly FollowedRef[];
  /** Where the logs were before anything was read. */
  at: readonly LogPosition[];
  /** What may be read of the collections: the same for all who are shown the same. */
  key: string;
}

/** Changed documents of a collection that is referred to. */
export interface RefNews {
  ids: ReadonlySet<string>;
  to: LogPosition;
}

const CHUNK = 500;
const CHUNK_BYTES = 1024 * 1024;
/** After more changes a follower starts over. */
const MAX_CHANGED = 2_000;

/** Opens what a query populates; null for nothing. 400 and 401 as for lists, 409 CHANGES_OFF. */
export async function openRefs(
  app: App,
  caller: Caller,
  collection: Collection,
  { populate }: Pick<FeedQuery, 'populate'>,
): Promise<FollowedRefs | null> {
  if (populate.length === 0) return null;
  const populated = await openPopulated(app, caller, collection, { populate, includeDeleted: false });
  const key = digest(
    EJSON.stringify(
      populated.map(({ collection: { _id }, readable, visibility }) => [_id, readable, visibility?.key ?? null]),
    ),
  );
  const collections = populated.map((each) => {
    requireChanges(app, each.collection);
    return { ...each, log: openChangeLog(app, each.collection) };
  });
  return { collections, at: await findEnds(collections), key };
}

/** Where the logs end now. */
export function findEnds(collections: readonly Pick<FollowedRef, 'log'>[]): Promise<LogPosition[]> {
  return Promise.all(collections.map(async ({ log }) => log.position?.() ?? (await log.begin())));
}

/** True if what may be read of the collections is still the same. */
export async function hasSameRefs(
  app: App,
  caller: Caller,
  collection: Collection,
  query: Pick<FeedQuery, 'populate'>,
  { key }: FollowedRefs,
): Promise<boolean> {
  try {
    return (await openRefs(app, caller, collection, query))?.key === key;
  } catch (error) {
    // Nothing of them may be read any more, or followed.
    if (error instanceof AppError) return false;
    throw error;
  }
}

/** True where what may be read of the collections may change by itself. */
export function mayLoseRefs({ collections }: FollowedRefs): boolean {
  return collections.some(({ collection }) => {
    const { attributes, sets } = rulesOf(collection).read;
    return attributes.length > 0 || sets.length > 0 || visibilityNeedsAccount(collection);
  });
}

/** True where nothing has changed since these positions, as far as can be told without asking the database. */
export function areSameRefs({ collections }: FollowedRefs, known: readonly LogPosition[]): boolean {
  return collections.every(({ log }, n) => {
    const end = log.position?.();
    return end?.epoch === known[n]?.epoch && end?.seq === known[n]?.seq && end !== undefined;
  });
}

/** The documents that have changed since a position. 410 CURSOR_EXPIRED where the log does not say. */
export async function readRefNews({ log }: FollowedRef, { epoch, seq: since }: LogPosition): Promise<RefNews> {
  const ids = new Set<string>();
  const end = log.position?.();
  if (end?.epoch === epoch && end.seq === since) return { ids, to: { epoch, seq: since } };
  for (let seq = since; ;) {
    const found = await log.watch({
      after: { epoch, seq },
      visible: NOTHING,
      limit: CHUNK,
      maxBytes: CHUNK_BYTES,
    });
    if (!found) throw cursorExpired();
    for (const { id } of found.changes) ids.add(id);
    seq = found.seq;
    if (found.isEnd) return { ids, to: { epoch, seq } };
    if (ids.size > MAX_CHANGED) throw cursorExpired();
  }
}

/** The condition of documents that refer to changed ones; null when none has changed. */
export function referringFilter(
  refs: readonly Pick<PopulatedCollection, 'paths'>[],
  news: readonly RefNews[],
): Document | null {
  const alternatives = refs.flatMap(({ paths }, n) => {
    const ids = [...news[n]!.ids];
    if (ids.length === 0) return [];
    const values = [...ids, ...ids.map((id) => id.toUpperCase())];
    return paths.map((path) => ({ [path]: { $in: values } }));
  });
  return alternatives.length > 0 ? { $or: alternatives } : null;
}

/** Changes with their documents as they are shown, in which ids are replaced by the documents that they name. */
export async function populateChanges(
  app: App,
  refs: FollowedRefs,
  changes: readonly FoundChange[],
  query: FeedQuery,
  size: ReplySize,
): Promise<PopulatedChange[]> {
  const { fields, meta, visibility } = query;
  const paths = fields && widest([...fields, ...query.populate.map(({ path }) => path)]);
  const rows = changes.flatMap(({ document }) => document ?? []);
  const documents = rows.map((row) => {
    const document = decodeStored(paths ? row : redactRow(row, visibility ?? null));
    return presentDocument(paths ? selectFields(document, paths) : document, meta);
  });
  await populateFrom(app, refs.collections, documents, { includeDeleted: false, meta }, size);
  let next = 0;
  return changes.map(({ id, at, document }) => {
    if (!document) return { id, at, document };
    return { id, at, document, json: Buffer.from(JSON.stringify(documents[next++])).latin1Slice() };
  });
}
