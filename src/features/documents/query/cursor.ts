import { EJSON, type Document } from 'bson';
import { invalid, type AppError } from '../../../errors.js';
import type { SecretBox } from '../../../platform/secrets/secret-box.js';
import { MAX_TOKEN_CHARACTERS, openToken, createSignedToken, type TokenForm } from '../../../platform/secrets/jwt.js';
import type { Collection } from '../../collections/collection.js';
import type { SortField } from './parse-sort.js';
import { badQuery } from '../reply/query-text.js';
import { RANK, type SortKey } from './sort-key.js';

/** The list that a cursor belongs to. Page size and presentation may change on the way. */
export interface CursorScope {
  collection: Pick<Collection, '_id' | 'projectId'>;
  sort: readonly SortField[];
  /** Filter conditions, in any order. */
  conditions: readonly Document[];
  includeDeleted: boolean;
  /** What the caller may read of it; null = everything. The total that a cursor carries counts no more than that. */
  readable: Document | null;
}

const formOf = (scope: CursorScope): TokenForm => ({
  purpose: 'cursor',
  signed: (payload) => signedText(scope, payload),
});

/** The content of a cursor, carried from one page to the next. */
export interface CursorState {
  /** The sort keys of the last document shown. */
  position: readonly SortKey[];
  /** How many documents there were when the walk began; null in a cursor of an earlier version. */
  total: number | null;
}

/**
 * The state after a page as opaque text that only the service can make. 400 when the sorted values are too long for it.
 */
export function signCursor(
  secrets: Pick<SecretBox, 'mac'>,
  scope: CursorScope,
  { position, total }: CursorState,
): string {
  const keys = position.map((key) => ('value' in key ? [key.rank, key.value] : [key.rank]));
  const text = EJSON.stringify(total === null ? keys : { total, keys });
  if (Math.ceil((Buffer.byteLength(text) * 4) / 3) > MAX_TOKEN_CHARACTERS) {
    throw badQuery('sort: the values of a sorted field are too long to page by cursor; sort by a shorter field');
  }
  return createSignedToken(secrets, formOf(scope), text);
}

/** The state that a cursor names. 400 INVALID_CURSOR unless the service made it for this very list. */
export function openCursor(secrets: Pick<SecretBox, 'macs'>, scope: CursorScope, cursor: string): CursorState {
  const text = openToken(secrets, formOf(scope), cursor);
  if (text === null) throw badCursor();
  const state = EJSON.parse(text) as SignedKey[] | { total: number; keys: SignedKey[] };
  const [keys, total] = Array.isArray(state) ? [state, null] : [state.keys, state.total];
  return { position: keys.map(([rank, value]) => (rank === RANK.empty ? { rank } : { rank, value })), total };
}

type SignedKey = [SortKey['rank'], unknown?];

function signedText({ collection, sort, conditions, includeDeleted, readable }: CursorScope, payload: string): string {
  return EJSON.stringify([
    collection.projectId,
    collection._id,
    sort.map(({ path, direction }) => [path, direction]),
    conditions.map((condition) => EJSON.stringify(condition)).sort(),
    includeDeleted,
    ...(readable ? [readable] : []),
    payload,
  ]);
}

function badCursor(): AppError {
  return invalid(
    'INVALID_CURSOR',
    'cursor is not valid for this list: it was altered, or belongs to another collection, sort, filter or user; start again with cursor=start',
  );
}
