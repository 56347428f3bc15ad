import { applyChange, type Fields } from './change.js';
import type { Changes, LocalStore } from './store.js';

/** A document as the service answers it. */
export type Doc = Fields & { _id: string; updatedAt: string };

/** One write, as a batch has it. */
export interface Operation {
  op: 'insert' | 'update' | 'remove' | 'recover';
  collection: string;
  id: string;
  body?: Fields | undefined;
  /** The version that the document had when the change was made. */
  base?: Doc | undefined;
  /** The version that it is sent for. */
  ifMatch?: string | undefined;
}

/** Writes that are carried out together, in the queue under `q/` and their number. */
export interface Entry {
  /** Names the entry, so that it is stored once, and a batch that it is the first of. */
  key: string;
  at: string;
  operations: Operation[];
  /**
   * Set before it is sent with others: a repeated request is the same, under the same Idempotency-Key. An entry that is
   * sent alone is so without it, and what has become of it is known by its key.
   */
  batch?: { key: string; at: number } | undefined;
  /** The service may have carried it out, and no longer know. */
  isOld?: boolean | undefined;
}

/** A document, under `d/`, its collection and id. */
export interface Held {
  /** As the change feed has told of it. */
  copy?: Doc | undefined;
  /** As the service has answered a write, until the feed has told of it too; null: removed. */
  answer?: Doc | null | undefined;
}

/** What is known of a collection, under `c/` and its name. */
export interface Kept {
  /** Where the feed goes on. */
  cursor?: string | undefined;
  /** The copy was complete once. */
  isReady?: boolean | undefined;
}

export const placeOf = ({ collection, id }: Operation): string => `d/${collection}/${id}`;

/** The newest version of the service that is known here. */
export const newestOf = ({ copy, answer }: Held = {}): Doc | undefined => {
  if (answer === undefined) return copy;
  return answer === null ? undefined : !copy || answer.updatedAt > copy.updatedAt ? answer : copy;
};

/** The queue, in the order in which it is sent. */
export const entriesOf = ({ state }: Pick<LocalStore, 'state'>): [string, Entry][] =>
  [...state].filter(([key]) => key.startsWith('q/')).sort(([a], [b]) => (a < b ? -1 : 1)) as [string, Entry][];

const operationsOf = (value: unknown): Operation[] => (value as Entry | undefined)?.operations ?? [];

/** Documents as they are shown, by collection and id: with the queue laid over them. */
export interface View {
  of: (collection: string) => ReadonlyMap<string, Doc>;
  /** Shows what has changed, and answers in which collections. */
  update: (state: LocalStore['state'], before: Changes) => Set<string>;
}

export function openView(): View {
  const shown = new Map<string, Map<string, Doc>>();
  const of = (collection: string): Map<string, Doc> => {
    const documents = shown.get(collection) ?? new Map<string, Doc>();
    shown.set(collection, documents);
    return documents;
  };
  return {
    of,
    update(state, before) {
      const places = new Set<string>();
      const collections = new Set<string>();
      for (const [key, value] of before) {
        if (key.startsWith('d/')) places.add(key);
        if (key.startsWith('c/')) collections.add(key.slice(2));
        for (const each of [...operationsOf(value), ...operationsOf(state.get(key))]) places.add(placeOf(each));
      }
      const waiting = places.size > 0 ? entriesOf({ state }) : [];
      const laid = new Map<string, Doc | undefined>();
      for (const place of places) laid.set(place, newestOf(state.get(place) as Held));
      for (const [, { at, operations }] of waiting) {
        for (const operation of operations) {
          const place = placeOf(operation);
          if (places.has(place)) laid.set(place, overlay(laid.get(place), operation, at));
        }
      }
      for (const [place, document] of laid) {
        const [, collection = '', id = ''] = /^d\/(.+?)\/(.*)/.exec(place)!;
        if (document) of(collection).set(id, document);
        else of(collection).delete(id);
        collections.add(collection);
      }
      return collections;
    },
  };
}

function overlay(document: Doc | undefined, { op, id, body = {} }: Operation, at: string): Doc | undefined {
  if (op === 'insert') return { createdAt: at, ...body, _id: id, updatedAt: at };
  if (op === 'remove') return undefined;
  return op === 'update' && document ? { ...applyChange(document, body), _id: id, updatedAt: at } : document;
}
