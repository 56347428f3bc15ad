import type { App } from '../../../app.js';
import type { Collection } from '../../collections/collection.js';
import { failList } from '../reply/query-errors.js';
import { documentStore } from '../store/document-store.js';
import { visibleDocuments } from '../store/document.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';

export interface ShapedField {
  name: string;
  /** Types of its values, the most frequent first. */
  types: string[];
  /** Of the documents looked at, 0 to 1. */
  share: number;
}

const NEWEST = 100;
const MAX_FIELDS = 200;
const OLDEST = 100;
/** System fields that every document has. */
const OF_ALL = new Set(['_id', 'isDeleted', 'deletedAt', 'createdAt', 'updatedAt', HIDDEN_FIELD]);

/**
 * The fields that documents of a collection have, from some of the newest and of the oldest; the most frequent first.
 */
export async function findShape(app: App, collection: Collection): Promise<{ looked: number; fields: ShapedField[] }> {
  const store = documentStore(app, collection);
  const visible = visibleDocuments();
  // Each kind of value by its type alone: of a large document nothing but names and types is read.
  const kinds = { $map: { input: { $objectToArray: '$$ROOT' }, in: { k: '$$this.k', t: { $type: '$$this.v' } } } };
  const look = (direction: 1 | -1, limit: number): Promise<Looked[]> =>
    store
      .aggregate(
        [
          { $match: visible },
          { $sort: { createdAt: direction, _id: direction } },
          { $limit: limit },
          { $project: { kinds } },
        ],
        { maxTimeMS: app.config.queryTimeoutMs },
      )
      .toArray()
      .catch(failList) as Promise<unknown> as Promise<Looked[]>;
  const found = [...(await look(-1, NEWEST)), ...(await look(1, OLDEST))];
  const looked = new Map(found.map(({ _id, kinds: seen }) => [String(_id), seen]));
  const fields = new Map<string, Map<string, number>>();
  for (const seen of looked.values()) {
    for (const { k, t } of seen) {
      if (OF_ALL.has(k)) continue;
      const types = fields.get(k) ?? new Map<string, number>();
      types.set(t, (types.get(t) ?? 0) + 1);
      fields.set(k, types);
    }
  }
  const sum = (types: Map<string, number>): number => [...types.values()].reduce((all, count) => all + count, 0);
  const shaped = [...fields].map(([name, types]) => ({
    name,
    types: [...types].sort(([, a], [, b]) => b - a).map(([type]) => type),
    share: sum(types) / looked.size,
  }));
  return { looked: looked.size, fields: shaped.sort((a, b) => b.share - a.share).slice(0, MAX_FIELDS) };
}

interface Looked {
  _id: unknown;
  kinds: { k: string; t: string }[];
}
