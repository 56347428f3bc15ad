import type { Document, ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict } from '../../errors.js';
import { hexOf } from '../../platform/ids.js';
import type { Collection } from '../collections/collection.js';

/** Where the log of a collection's changes is at a moment. */
export interface LogPosition {
  /** Another one after the log began again. */
  epoch: string;
  /** The number of the last change. */
  seq: number;
}

/** Who looks for changes, and for which. */
export interface ChangeSearch {
  after: LogPosition;
  /** The condition for showing a document as it is now: rules, visibility and the client's conditions. */
  filter: Document;
  /** The rules alone; null if all documents are readable. */
  readable: Document | null;
  conditions: readonly Document[];
  limit: number;
  /** Of the documents; one alone may be larger. */
  maxBytes: number;
}

export interface FoundChange {
  id: string;
  at: Date;
  /** As BSON; null when the document is gone for the caller. */
  document: Buffer | null;
}

export interface FoundChanges {
  changes: FoundChange[];
  seq: number;
  /** Nothing was left when the last document was read. */
  isEnd: boolean;
}

/** Who looks for all changes, to tell many others of them. */
export interface ChangeWatch {
  after: LogPosition;
  /** The condition for documents that any caller may read. */
  visible: Document;
  limit: number;
  maxBytes: number;
}

/** A document before a change, as a log knows it: on a MongoDB the fields of the rule `read` alone. */
export interface EarlierDocument {
  bytes: Buffer;
  isPartial: boolean;
  /** A field of rules was too large to be kept. */
  isCut?: boolean;
}

/** A change for those it concerns. */
export interface WatchedChange {
  id: string;
  at: Date;
  /** As BSON; null if no caller may read it. */
  document: Buffer | null;
  /** Before each change that was looked at; null where the log does not know it, as under row-level security. */
  earlier: readonly EarlierDocument[] | null;
  /** Under row-level security on a MongoDB: the owners at the times of the changes. */
  owners: readonly unknown[];
}

export interface WatchedChanges {
  changes: WatchedChange[];
  seq: number;
  /** Nothing was left when the last document was read. */
  isEnd: boolean;
}

/** The changes of one document that are looked for. */
export interface HistorySearch {
  id: ObjectId;
  /** `next` of the search before, or null. */
  before: number | null;
  limit: number;
  /** Of the log that are looked at, those of other documents too. */
  maxEntries: number;
}

export interface HistoryChange {
  at: Date;
  /** On a MongoDB always `changed`: the log there does not know what was done. */
  change: 'created' | 'changed' | 'removed';
  /** The document before; null where nothing is known of it. */
  earlier: EarlierDocument | null;
}

export interface FoundHistory {
  /** The newest first. */
  changes: HistoryChange[];
  /** Null when there is nothing older. */
  next: number | null;
}

/** The extent of a log. */
export interface LogSize {
  bytes: number;
  /** The moment of the oldest change that it holds; null when it holds none. */
  since: Date | null;
}

/**
 * The durable log of the changes of a collection's documents: the embedded engine's own, or on a MongoDB one that the
 * transactions of the changes store.
 */
export interface ChangeLog {
  /** Begins the log where there is none. */
  begin(): Promise<LogPosition>;
  /** Where it ends at this moment, over all writers; null when there is none. Only of a log that can tell at once. */
  position?(): LogPosition | null;
  /**
   * Changes after a position, each document once; null when the log does not reach back to it, is another one, or does
   * not say whether the follower was shown a document that is gone.
   */
  read(search: ChangeSearch): Promise<FoundChanges | null>;
  /** The same for a follower who judges for others: every changed document, and what is known of it before. */
  watch(search: ChangeWatch): Promise<WatchedChanges | null>;
  /** The changes of one document; null where no log was begun. */
  history(search: HistorySearch): Promise<FoundHistory | null>;
  end(): Promise<void>;
  /** What it holds; null where none was begun. */
  size(): Promise<LogSize | null>;
  /** Removes what is older, and then the oldest until no more than the bytes are left. */
  trim(since: Date, maxBytes: number): Promise<void>;
}

/** The part of a collection that its log uses. */
export type Logged = Pick<
  Collection,
  '_id' | 'projectId' | 'rls' | 'rules' | 'mode' | 'fields' | 'indexes' | 'namedBy'
>;

/** True if changes of a collection can be followed: unless it says so itself, on the embedded engine. */
function offersChanges(app: Pick<App, 'db'>, { changes }: Pick<Collection, 'changes'>): boolean {
  return changes?.on ?? app.db.changeLogs !== null;
}

/** 409 CHANGES_OFF when the changes of a collection cannot be followed. */
export function requireChanges(app: Pick<App, 'db'>, collection: Collection): void {
  if (offersChanges(app, collection)) return;
  throw conflict(
    'CHANGES_OFF',
    `The changes of "${collection.name}" are not kept: switch it on with "bsvc collection edit ${collection.name} --changes on"`,
  );
}

/** True if changes of a collection are logged: where they can be followed, or sets of rules are of it. */
export function keepsChanges(app: Pick<App, 'db'>, collection: Pick<Collection, 'changes' | 'namedBy'>): boolean {
  return isNamed(collection) || offersChanges(app, collection);
}

/** True if rules name sets of the collection. */
export function isNamed({ namedBy = [] }: Pick<Collection, 'namedBy'>): boolean {
  return namedBy.length > 0;
}

/** Has those look who wait for changes of a collection. */
export function notifyFollowers(app: Pick<App, 'hints'>, { _id }: { _id: ObjectId }): void {
  app.hints.tell(hintOf(_id));
}

/** The hint that a collection has changed. */
export function hintOf(collectionId: ObjectId): string {
  return `changes:${hexOf(collectionId)}`;
}
