import { LRUCache } from 'lru-cache';
import type { Collection } from '../../collections/collection.js';
import { filtersOf, findOperator } from '../../documents/query/parse-list-query.js';
import { badQuery, readQueryText } from '../../documents/reply/query-text.js';
import { FEED_PARAMETERS, readFeedQuery, type FeedQuery } from '../feed-query.js';

/** A live filter is tried on every change, so it may be no more than this. */
const MAX_CONDITIONS = 20;
const MAX_LISTED_VALUES = 100;
/** Documents of a page that a stream is sent. */
const PAGE_LIMIT = 200;
/** Parameters of pages. */
const REFUSED = ['limit', 'wait'];

/** Queries that were read lately, by collection, its version and the text: thousands of streams ask for the same. */
const lately = new LRUCache<string, FeedQuery>({ max: 1_000 });
/** Longer ones are not remembered. */
const MAX_REMEMBERED_CHARACTERS = 512;

/**
 * Reads the query of a subscription: that of changes within the limits of live filters. 400 INVALID_QUERY. Those who
 * ask for the same share what it answers.
 */
export function readLiveQuery(raw: string, collection: Collection): FeedQuery {
  if (raw.length > MAX_REMEMBERED_CHARACTERS) return parseLiveQuery(raw, collection);
  const key = `${collection._id.toHexString()} ${collection.version} ${raw}`;
  let query = lately.get(key);
  if (!query) lately.set(key, (query = parseLiveQuery(raw, collection)));
  return query;
}

function parseLiveQuery(raw: string, collection: Collection): FeedQuery {
  const text = readQueryText(raw);
  for (const name of REFUSED) if (text.has(name)) throw badQuery(`${name} is not a parameter of a stream`);
  const query = readFeedQuery(raw, collection);
  const filters = filtersOf(text, collection).filter(([name]) => !FEED_PARAMETERS.has(name));
  if (filters.length > MAX_CONDITIONS) {
    throw badQuery(`The filter of a stream may have at most ${MAX_CONDITIONS} conditions`);
  }
  for (const [name, values] of filters) {
    const { suffix, inStreams, takes } = findOperator(collection, name);
    if (!inStreams) {
      throw badQuery(
        `The filter of a stream may not use ${suffix}: filter by other fields, or ask for changes by wait`,
      );
    }
    const listed = values.reduce((count, value) => count + value.split(/,|%2c/i).length, 0);
    if (takes === 'list' && listed > MAX_LISTED_VALUES) {
      throw badQuery(`${name} of a stream may list at most ${MAX_LISTED_VALUES} values`);
    }
  }
  return { ...query, limit: PAGE_LIMIT };
}

/** What a subscription costs those who keep it: itself, each condition and each value that a condition lists. */
export function countConditions({ conditions }: FeedQuery): number {
  return 1 + conditions.reduce((sum, condition) => sum + countLeaves(condition), 0);
}

function countLeaves(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, inner) => sum + countLeaves(inner), 0);
}
