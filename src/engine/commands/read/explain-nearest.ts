import type { Doc } from '../../codec/document.js';
import type { Budget } from '../../pipeline/budget.js';
import { readGeoNear } from '../../query/geometry/geo-near.js';
import type { ExpressionContext } from '../../query/expression.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import type { View } from '../../storage/view.js';
import { compileQuery } from './query.js';
import { chooseNearestIndex, readNearest } from './read-nearest.js';

/** How a pipeline reads that begins with `$geoNear`. */
export interface NearestExplained {
  readonly filter: Doc;
  readonly winningPlan: Doc;
  /** Reads until `most` documents are there, and returns what was looked at for them. */
  execute(view: View, budget: Budget, most: number): Promise<Doc>;
}

/** Explains a `$geoNear`; refuses what running it would refuse: 27 and 291 when no index serves it. */
export function explainNearest(
  storage: Storage,
  collection: CollectionEntry,
  spec: unknown,
  environment: ExpressionContext | undefined,
): NearestExplained {
  const near = readGeoNear(spec);
  const { definition } = chooseNearestIndex(collection, near, compileQuery(near.query, {}, undefined, environment));
  return {
    filter: near.query,
    winningPlan: { stage: 'GEO_NEAR_2DSPHERE', keyPattern: definition.key, indexName: definition.name },
    async execute(view, budget, most) {
      const started = performance.now();
      const looked = { keys: 0, documents: 0 };
      let found = 0;
      for await (const docs of readNearest(storage, collection, near, null, budget, view, environment, looked)) {
        found += docs.length;
        if (found >= most) break;
      }
      return {
        executionSuccess: true,
        nReturned: Math.min(found, most),
        executionTimeMillis: Math.round(performance.now() - started),
        totalKeysExamined: looked.keys,
        totalDocsExamined: looked.documents,
      };
    },
  };
}
