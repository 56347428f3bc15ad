import { EJSON, type Document } from 'bson';
import { LRUCache } from 'lru-cache';
import { expired, invalid, type AppError } from '../../errors.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { MAX_TOKEN_CHARACTERS, openToken, createSignedToken, type TokenForm } from '../../platform/secrets/jwt.js';
import type { Collection } from '../collections/collection.js';
import type { LogPosition } from '../changes/change-log.js';
import { digest } from './feed-query.js';

/** How far a set of the caller is known. */
export interface SetPosition extends LogPosition {
  /** While a change of a set is being told: the later position of which that is. */
  told?: number;
}

/** Where a client is: in the collection itself, behind the document `shown`, or in the log alone. */
export interface FeedPosition extends LogPosition {
  /** The `_id` of the last document that was shown of those that are there; null: all have been, or none was wanted. */
  shown: unknown;
  isListing: boolean;
  /** Where the rule `read` names sets of the caller: one for each. */
  sets?: readonly SetPosition[];
  /** While a change of a set is being told: the position of the collection's log at which that ends. */
  until?: number;
  /** Where something is populated: one for each collection that is referred to. */
  refs?: readonly LogPosition[];
  /** Of a window: what was shown, by `digestOf`; empty while that is being told. */
  window?: string;
}

/** The scope for which a cursor holds. */
export interface FeedScope {
  collection: Collection;
  filterText: string;
  conditions: readonly Document[];
  /** The end user whose documents are shown; null for all users'. */
  userId: string | null;
  /** What the rules of a collection come to for the follower, its own id aside; null without rules of its own. */
  admitted: string | null;
}

const formOf = (scope: FeedScope): TokenForm => ({
  purpose: 'changes-cursor',
  signed: (payload) => signedText(scope, payload),
});

type Payload = [
  id: string,
  rules: string,
  who: string,
  epoch: string,
  seq: number,
  listing: 0 | 1,
  shown: unknown,
  sets?: [epoch: string, seq: number, told?: number][] | null,
  until?: number | null,
  window?: string | null,
  refs?: [epoch: string, seq: number][],
];

/** A position as opaque text that only the service can make. */
export function signFeedCursor(secrets: Pick<SecretBox, 'mac'>, scope: FeedScope, at: FeedPosition): string {
  const { collection } = scope;
  const payload: Payload = [
    collection._id.toHexString(),
    meaningOf(scope),
    whoOf(scope),
    at.epoch,
    at.seq,
    at.isListing ? 1 : 0,
    at.shown ?? null,
  ];
  if (at.sets) {
    payload.push(at.sets.map(({ epoch, seq, told }) => (told === undefined ? [epoch, seq] : [epoch, seq, told])));
    if (at.until !== undefined) payload.push(at.until);
  }
  // For a window the sets are read again.
  if (at.window !== undefined) payload.splice(7, Infinity, null, null, at.window);
  if (at.refs) {
    const [sets = null, until = null, window = null] = payload.splice(7) as [Payload[7], Payload[8], Payload[9]];
    payload.push(
      sets,
      until,
      window,
      at.refs.map(({ epoch, seq }) => [epoch, seq]),
    );
  }
  return createSignedToken(secrets, formOf(scope), EJSON.stringify(payload));
}

/**
 * The position that a cursor names. 400 INVALID_CURSOR unless the service made it for this collection, filter and
 * user; 410 CURSOR_EXPIRED when collection or rules are others since.
 */
export function openFeedCursor(secrets: Pick<SecretBox, 'macs'>, scope: FeedScope, cursor: string): FeedPosition {
  if (cursor.length > MAX_TOKEN_CHARACTERS) throw badCursor();
  const [id, rules, who, epoch, seq, listing, shown, sets, until, window, refs] = readGenuine(secrets, scope, cursor);
  if (id !== scope.collection._id.toHexString() || rules !== meaningOf(scope)) throw cursorExpired();
  // Checked last: under other rules it may belong to another user, or to no user.
  if (who !== whoOf(scope)) throw badCursor();
  const known = sets?.map(([ofEpoch, at, told]) => ({ epoch: ofEpoch, seq: at, ...(told !== undefined && { told }) }));
  const position = { epoch, seq, isListing: listing === 1, shown: shown ?? null };
  const at = { ...position, ...(refs && { refs: refs.map(([ofEpoch, n]) => ({ epoch: ofEpoch, seq: n })) }) };
  if (typeof window === 'string') return { ...at, window };
  return { ...at, ...(known && { sets: known }), ...(typeof until === 'number' && { until }) };
}

/**
 * Cursors that were found genuine lately, by what was checked: of thousands who come back at once most have the same.
 * No longer than a dropped master key may go unnoticed.
 */
const lately = new WeakMap<object, LRUCache<string, Payload>>();
const LATELY_MS = 1_000;
const MAX_LATELY = 1_000;
/** Longer ones are not remembered. */
const MAX_LATELY_CHARACTERS = 1_024;

/** The payload of a cursor for this collection and filter. 400 INVALID_CURSOR for any text not made here. */
function readGenuine(secrets: Pick<SecretBox, 'macs'>, scope: FeedScope, cursor: string): Payload {
  let known = lately.get(secrets);
  if (!known) lately.set(secrets, (known = new LRUCache({ max: MAX_LATELY, ttl: LATELY_MS })));
  const whole = signedText(scope, cursor);
  let payload = known.get(whole);
  if (payload) return payload;
  const text = openToken(secrets, formOf(scope), cursor);
  if (text === null) throw badCursor();
  payload = JSON.parse(text) as Payload;
  // Only the id of a document may be what JSON has no word for.
  if (payload[6] !== null) payload[6] = (EJSON.deserialize({ shown: payload[6] }) as { shown: unknown }).shown;
  if (whole.length <= MAX_LATELY_CHARACTERS) known.set(whole, payload);
  return payload;
}

/** The last digest of rules and conditions, remembered by the conditions, which streams of a kind share. */
const digested = new WeakMap<
  FeedScope['conditions'],
  Pick<Collection, 'mode' | 'rls'> & Pick<FeedScope, 'admitted'> & { text: string }
>();

function meaningOf({ collection: { mode, rls }, conditions, admitted }: FeedScope): string {
  const known = digested.get(conditions);
  if (known && known.mode === mode && known.rls === rls && known.admitted === admitted) return known.text;
  const text = digest(EJSON.stringify([mode, rls, conditions, ...(admitted === null ? [] : [admitted])]));
  digested.set(conditions, { mode, rls, admitted, text });
  return text;
}

function whoOf({ userId }: FeedScope): string {
  return userId === null ? '' : digest(userId);
}

function signedText({ collection, filterText }: FeedScope, text: string): string {
  return JSON.stringify([collection.projectId.toHexString(), collection.name, filterText, text]);
}

function badCursor(): AppError {
  return invalid(
    'INVALID_CURSOR',
    'The cursor does not belong to this collection, filter and user. Start without since',
  );
}

/** 410 */
export function cursorExpired(): AppError {
  return expired(
    'CURSOR_EXPIRED',
    'The changes since this cursor are no longer stored. Discard your copy and start without since',
  );
}
