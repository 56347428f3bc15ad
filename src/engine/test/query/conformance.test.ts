import { describe, expect, it } from 'vitest';
import type { Doc } from '../../codec/document.js';
import { EngineError } from '../../errors.js';
import { compileFilter } from '../../query/match/match.js';
import { splitPath, visitPath } from '../../query/values/path.js';
import { compileProjection } from '../../query/project.js';
import { compileSort } from '../../query/sort.js';
import { compileUpdate } from '../../query/update/update.js';
import { compareValues, identicalValues } from '../../query/values/compare.js';
import { keyOf } from '../../query/values/value-key.js';
import { type Case, cases, collections, deviationOf, textOf } from '../cases/mongo-cases.js';
import { aggregate } from './memory-collections.js';

function find(test: Case): unknown {
  const { sort = { _id: 1 }, projection = {}, skip = 0, limit = 0 } = (test.options ?? {}) as Record<string, never>;
  const filter = compileFilter(test.filter ?? {});
  const { apply } = compileProjection(projection);
  const { compare } = compileSort(sort);
  const found = collections[test.collection!]!.map((doc) => ({ doc, match: filter.match(doc) }))
    .filter(({ match }) => match !== null)
    .sort((a, b) => compare(a.doc, b.doc));
  const cut = found.slice(skip, limit > 0 ? skip + limit : undefined);
  return test.op === 'count' ? cut.length : cut.map(({ doc, match }) => apply(doc, match));
}

function distinct(test: Case): unknown {
  const filter = compileFilter(test.filter ?? {});
  const values = new Map<unknown, unknown>();
  for (const doc of collections[test.collection!]!) {
    if (!filter.matches(doc)) continue;
    visitPath(doc, splitPath(test.key!), false, (found) => {
      for (const value of Array.isArray(found) ? (found as unknown[]) : [found]) {
        if (value !== undefined && !values.has(keyOf(value))) values.set(keyOf(value), value);
      }
      return false;
    });
  }
  return [...values.values()].sort(compareValues);
}

function write(test: Case): unknown {
  const options = (test.options ?? {}) as Record<string, never>;
  const filter = compileFilter(test.filter!);
  const update = compileUpdate(test.update!, { arrayFilters: options['arrayFilters'] ?? [] });
  const docs = [...test.docs!];
  const now = new Date();
  let [matched, modified, upserted] = [0, 0, 0];
  let returned: Doc | undefined;
  for (const [i, doc] of docs.entries()) {
    const match = filter.match(doc);
    if (match === null) continue;
    matched++;
    const result = update.apply(doc, { arrayIndex: match.arrayIndex, inserting: false, now });
    if (result.changed) modified++;
    docs[i] = result.doc;
    returned = options['returnDocument'] === 'after' ? result.doc : doc;
    if (options['multi'] !== true) break;
  }
  if (matched === 0 && options['upsert'] === true) {
    upserted = 1;
    docs.push(update.upsert(test.filter!, { inserting: true, now }));
  }
  if (test.op !== 'findOneAndUpdate') return { result: [matched, modified, upserted], docs };
  return { result: compileProjection(options['projection'] ?? {}).apply(returned!), docs };
}

async function run(test: Case): Promise<unknown> {
  switch (test.op) {
    case 'find':
    case 'count':
      return find(test);
    case 'distinct':
      return distinct(test);
    case 'aggregate':
      return aggregate(collections, test.collection!, test.pipeline);
    default:
      return write(test);
  }
}

for (const group of new Set(cases.map((test) => test.group))) {
  describe(group, () => {
    cases.forEach((test, index) => {
      if (test.group !== group) return;
      const name = `#${String(index)} ${textOf(test.filter ?? test.pipeline)} ${textOf(test.update)}`.slice(0, 160);
      it(name, async () => {
        const deviation = deviationOf(test);
        let answer: unknown;
        let code: number | undefined;
        try {
          answer = await run(test);
        } catch (error) {
          if (!(error instanceof EngineError)) throw error;
          code = error.code;
        }
        const same =
          test.error === undefined ? code === undefined && identicalValues(answer, test.expect) : code !== undefined;
        if (deviation !== undefined) expect(same, `no deviation any more: ${deviation}`).toBe(false);
        else if (!same) expect(code ?? textOf(answer)).toBe(test.error ?? textOf(test.expect));
        else expect(same).toBe(true);
      });
    });
  });
}
