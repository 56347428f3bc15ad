import type { Doc } from '../../codec/document.js';
import { collationOf } from '../../query/collation/collation.js';
import { openExpressionContext } from '../../query/expression.js';
import { compileFilter } from '../../query/match/match.js';
import type {
  CollectionDefinition,
  CollectionEntry,
  IndexEntry,
  LogDefinition,
  PreparedLog,
} from '../keys/index-definition.js';
import { componentLimit } from '../encoding/key-encoding.js';

/** A collection ready for use, from its stored definition. */
export function prepareCollection(definition: CollectionDefinition): CollectionEntry {
  const indexedFields = new Set<string>(['_id']);
  const { countBy } = definition;
  if (countBy !== undefined) indexedFields.add(countBy);
  const conditionFields = new Set<string>();
  const indexes = definition.indexes.map((index): IndexEntry => {
    const fields = Object.keys(index.key).map((path) => {
      const parts = path.split('.');
      indexedFields.add(parts[0]!);
      return { path, parts, descending: Number(index.key[path]) < 0 };
    });
    const limit = componentLimit(fields.length);
    const isGeo = isGeoKey(index.key);
    const roots = fields.map((field) => field.parts[0]!);
    const collation =
      index.collation === undefined ? null : collationOf(index.collation.locale, index.collation.strength);
    const entry = { definition: index, fields, isGeo, collation, limit };
    if (index.partialFilterExpression === undefined) {
      return { ...entry, partial: null, condition: null, reads: new Set(roots) };
    }
    const environment = { ...openExpressionContext(), collation };
    const filter = compileFilter(index.partialFilterExpression, { environment });
    for (const field of filter.fields ?? []) indexedFields.add(field);
    const condition = filter.residual ? 'unknown' : filter.conjuncts;
    for (const { path, op } of filter.conjuncts) if (op !== 'exists') conditionFields.add(path);
    const reads = filter.fields === null ? null : new Set([...roots, ...filter.fields]);
    return { ...entry, partial: (doc) => filter.matches(doc), condition, reads };
  });
  const countField = countBy === undefined ? null : new Set([countBy]);
  const log = definition.log === undefined ? null : prepareLog(definition.log);
  return { definition, id: definition.id, ns: definition.ns, indexes, indexedFields, conditionFields, countField, log };
}

/** The only field of such an index is `2dsphere`. */
export function isGeoKey(key: Doc): boolean {
  return Object.values(key)[0] === '2dsphere';
}

function prepareLog({ id, first, omit, except }: LogDefinition): PreparedLog {
  const kept = except === undefined ? null : toName(except);
  return { id, first: first.map(toName), omit: omit.map(toName), except: kept, omitted: new Set(omit) };
}

/** A name as it stands in BSON. */
function toName(name: string): Buffer {
  return Buffer.from(`${name}\0`);
}
