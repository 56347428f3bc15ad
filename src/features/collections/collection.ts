import type { Expire } from './fields/expire.js';
import type { Unique } from './fields/unique.js';
import type { ObjectId } from 'bson';
import type { Field } from './fields/field.js';
import { forbidden, invalid } from '../../errors.js';

export type CollectionMode = 'enforced' | 'flexible';
export type RlsMode = 'public-read' | 'private';

/** Who may access a collection, in one word. */
export const ACCESS_WORDS = ['public', 'public-read', 'private', 'server-only'] as const;
export type AccessWord = (typeof ACCESS_WORDS)[number];

/** Row-level security; null in a collection's record means disabled. */
export interface Rls {
  mode: RlsMode;
  /** Name of the field that holds the owning user's id, for example `userId`. */
  ownerField: string;
}

/**
 * Who may do what with a publishable key, each a rule's text (rules.md 1). `updateTo` is what an update may lead to;
 * absent: what `update` says.
 */
export interface AccessRules {
  read: string;
  create: string;
  update: string;
  delete: string;
  updateTo?: string;
}

/** A collection whose rules name sets of another one, and by which of its fields they find them. */
export interface NamingCollection {
  collection: ObjectId;
  /** For each set the fields of an index, the one that is asked for the user first. */
  keys: string[][];
  /** All fields that the sets name, those without a key among them; absent where it was noted by an earlier version. */
  paths?: string[];
}

/** Anything left out is as the settings and the kind of database have it. */
export interface ChangesSetting {
  on?: boolean;
  keepMs?: number;
}

/** A kind of read that looked at many documents, and the index that would serve it. */
export interface UnindexedRead {
  shape: string;
  index: string;
  at: Date;
}

/** The record of a registered collection (rest-api.md 2.2). */
export interface Collection {
  _id: ObjectId;
  projectId: ObjectId;
  name: string;
  mode: CollectionMode;
  fields: Field[];
  rls: Rls | null;
  /** Instead of row-level security; absent and null are the same. */
  rules?: AccessRules | null;
  /**
   * Every key reads, the secret key writes: row-level security that is disabled (rest-api.md 2.2). Without it, without
   * rules and row-level security, a collection is for the secret key only.
   */
  isPublic: boolean;
  /** Those whose rules name sets of this one: its fields are checked, indexed and kept in its log (rules.md 5). */
  namedBy?: NamingCollection[];
  /** Fields indexed on request, on top of those that schema and RLS ask for. */
  indexes: string[];
  /** Fields whose values together are unique among active documents that have all of them; absent: none. */
  uniques?: Unique[];
  /** When documents go by themselves; absent and null: never. */
  expire?: Expire | null;
  /** Fields whose folded values are stored but not used for comparisons: not yet, or no longer (decision 58). */
  folding?: string[];
  /** The keeping of changes for those who follow them; absent: as the kind of database has it. */
  changes?: ChangesSetting;
  /** Reads that an index would have served; the last few shapes of them. */
  unindexed?: UnindexedRead[];
  /** Grows with every change, so that compiled validators can be kept per version. */
  version: number;
  /** `dropping` while the documents are being removed: no longer reachable. */
  state: 'active' | 'dropping';
  createdAt: Date;
  updatedAt: Date;
}

/**
 * The stored name of a collection's documents: made of ids, so that `item` and `Item` never meet and a rename moves
 * nothing.
 */
export function documentsName(collection: Pick<Collection, '_id' | 'projectId'>): string {
  let name = names.get(collection);
  if (name === undefined) {
    name = documentsPrefix(collection.projectId) + collection._id.toHexString();
    names.set(collection, name);
  }
  return name;
}

/** By the record, which all requests of a moment share; each asks for its name several times. */
const names = new WeakMap<object, string>();

/** The beginning of the stored names of all of a project's documents. */
export function documentsPrefix(projectId: ObjectId): string {
  return `documents_${projectId.toHexString()}_`;
}

const COLLECTION_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/** True if a text can name a collection (decisions.md 3). Names are case-sensitive. */
export function isCollectionName(text: string): boolean {
  return COLLECTION_NAME.test(text);
}

/**
 * Refuses what cannot name a new collection: 400 for its form, 403 USERS_BLOCKED for `users…` in any spelling, whose
 * paths are closed (rest-api.md 2.6).
 */
export function requireCollectionName(name: string): void {
  if (!isCollectionName(name)) {
    throw invalid('INVALID_NAME', 'A collection name has 1 to 64 letters, digits, _ or - and starts with a letter');
  }
  if (name.toLowerCase().startsWith('users')) {
    throw forbidden('USERS_BLOCKED', 'Names beginning with "users" are kept for end-user accounts: choose another');
  }
}
