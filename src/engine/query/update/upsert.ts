import { type Doc, isDocument, setField } from '../../codec/document.js';
import { CODES, refusal } from '../../errors.js';
import { isOperatorDocument } from '../match/match.js';
import { splitPath } from '../values/path.js';
import { fieldOf, typeOf } from '../values/value.js';

/**
 * The document that an upsert starts from: the equalities of the filter's conjunction. Two for one path, or one below
 * another, are refused (54). With `onlyId` (replacements) nothing but `_id` is looked for.
 */
export function upsertDocument(filter: Doc, onlyId = false): Doc {
  const equalities = new Map<string, unknown>();
  collect(filter, equalities, onlyId);
  const doc: Doc = {};
  for (const [path, value] of equalities) place(doc, path, value);
  return doc;
}

function collect(filter: Doc, equalities: Map<string, unknown>, onlyId: boolean): void {
  for (const name of Object.keys(filter)) {
    const value = filter[name];
    if (name === '$and' || (name === '$or' && Array.isArray(value) && value.length === 1)) {
      for (const item of value as Doc[]) collect(item, equalities, onlyId);
      continue;
    }
    if (name.startsWith('$') || (onlyId && name !== '_id')) continue;
    const found = equalityOf(value);
    if (found === undefined) continue;
    if (equalities.has(name)) {
      throw refusal(CODES.NotSingleValueField, `cannot infer query fields to set, path '${name}' is matched twice`);
    }
    equalities.set(name, found.value);
  }
}

function equalityOf(value: unknown): { value: unknown } | undefined {
  if (typeOf(value) === 'regex') return undefined;
  if (!isDocument(value) || !isOperatorDocument(value)) return { value };
  if (Object.hasOwn(value, '$eq')) return { value: value['$eq'] };
  for (const name of ['$in', '$all']) {
    const list = value[name];
    if (!Array.isArray(list) || list.length !== 1 || typeOf(list[0]) === 'regex') continue;
    const item: unknown = list[0];
    if (!isOperatorDocument(item)) return { value: item };
  }
  return undefined;
}

function place(doc: Doc, path: string, value: unknown): void {
  const parts = splitPath(path);
  let target = doc;
  parts.forEach((part, i) => {
    const existing = fieldOf(target, part);
    if (i === parts.length - 1) {
      if (existing !== undefined) {
        throw refusal(CODES.NotSingleValueField, `cannot infer query fields to set, path '${path}' is matched twice`);
      }
      setField(target, part, value);
      return;
    }
    if (existing !== undefined && !isDocument(existing)) {
      throw refusal(
        CODES.NotSingleValueField,
        `cannot infer query fields to set, both '${path}' and a prefix of it are matched`,
      );
    }
    const inner = existing ?? {};
    if (existing === undefined) setField(target, part, inner);
    target = inner;
  });
}
