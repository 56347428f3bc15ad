import { type Call, checkCollation, type Command, readCount, readDoc, requireNamespace } from './command.js';
import { type Doc } from '../codec/document.js';
import { Pace } from './pace.js';
import { checkStillThere, compileQuery, openScan, planQuery } from './query.js';

export const count: Command = {
  fields: ['query', 'limit', 'skip', 'hint', 'collation'],
  async run(call, body) {
    const ns = requireNamespace(call, body['count']);
    const skip = readCount(body, 'skip') ?? 0;
    const limit = readCount(body, 'limit') ?? 0;
    checkCollation(body);
    const most = limit === 0 ? Infinity : skip + limit;
    const found = await countMatching(call, ns, body, most);
    return { n: Math.max(0, Math.min(found, most) - skip) };
  },
};

/** Collections of this size are counted in one piece: at most about 30 ms. */
const COUNTED_AT_ONCE = 1_000_000;

/** Counts what matches, up to about `most`: from the counter, from an index alone, or from the documents. */
export async function countMatching(call: Call, ns: string, body: Doc, most: number): Promise<number> {
  const { storage } = call.core;
  const query = compileQuery(readDoc(body, 'query'), {}, body['hint']);
  const pace = new Pace(readCount(body, 'maxTimeMS'), call.signal);
  storage.refresh();
  const collection = storage.catalog.find(ns);
  if (collection === null) return 0;
  if (query.everything && query.hint === undefined) return storage.catalog.size(collection.id).documents;
  const plan = planQuery(storage, collection, query, 0);
  const scan = openScan(storage, collection, plan, query);
  const atOnce = storage.catalog.size(collection.id).documents <= COUNTED_AT_ONCE;
  const found = { documents: 0 };
  while (!scan.finished && found.documents < most) {
    if (plan.exact) {
      found.documents += scan.countChunk(atOnce);
    } else {
      scan.readChunk(() => {
        found.documents++;
        return false;
      });
    }
    if (!scan.finished && pace.due(scan.lastRead)) {
      await pace.rest();
      checkStillThere(storage, collection, plan.index);
    }
  }
  return found.documents;
}
