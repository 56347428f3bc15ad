import { type Doc, isDocument } from '../../codec/document.js';
import { refusal } from '../../errors.js';
import { compileExpression } from '../../query/expression.js';
import { compileFilter } from '../../query/match/match.js';
import { readPath, splitPath } from '../../query/values/path.js';
import { integerOf, isNullish } from '../../query/values/value.js';
import { keyOf } from '../../query/values/value-key.js';
import { type MemoryCharge, type Run, type StageCompiler, unionOf } from '../stage.js';
import { withPath } from './basic.js';
import { equalityFilter, joinEach, MAX_ASKED } from './join.js';
import { requireSourceName, requireFieldPath } from './lookup.js';

const OPTIONS = [
  'from',
  'startWith',
  'connectFromField',
  'connectToField',
  'as',
  'maxDepth',
  'depthField',
  'restrictSearchWithMatch',
];

/** Follows references breadth first; each level is one query of the joined collection. */
export const graphLookup: StageCompiler = (spec, tools) => {
  if (!isDocument(spec)) throw refusal(40327, 'the $graphLookup stage specification must be an object');
  for (const name of Object.keys(spec)) {
    if (!OPTIONS.includes(name)) throw refusal(40104, `Unknown argument to $graphLookup: ${name}`);
  }
  if (!Object.hasOwn(spec, 'startWith')) throw refusal(40105, "$graphLookup requires 'startWith'");
  const from = requireSourceName(spec['from'], '$graphLookup');
  tools.joins(from);
  const as = splitPath(requireFieldPath(spec, 'as', '$graphLookup'));
  const connectTo = requireFieldPath(spec, 'connectToField', '$graphLookup');
  const connectFrom = splitPath(requireFieldPath(spec, 'connectFromField', '$graphLookup'));
  const start = compileExpression(spec['startWith'], tools.environment);
  const maxDepth = Object.hasOwn(spec, 'maxDepth') ? integerOf(spec['maxDepth']) : Infinity;
  if (maxDepth === null || maxDepth < 0) throw refusal(40101, 'maxDepth requires a nonnegative argument');
  const depthPath = Object.hasOwn(spec, 'depthField')
    ? splitPath(requireFieldPath(spec, 'depthField', '$graphLookup'))
    : null;
  const restriction = spec['restrictSearchWithMatch'];
  if (restriction !== undefined) {
    if (!isDocument(restriction)) throw refusal(40185, 'restrictSearchWithMatch must be an object');
    compileFilter(restriction, { environment: tools.environment });
  }

  /** The documents that any of the values leads to; a document that many lead to may come more than once. */
  async function* reached(values: readonly unknown[], run: Run): AsyncGenerator<Doc[]> {
    for (let at = 0; at < values.length; at += MAX_ASKED) {
      const equality = equalityFilter(connectTo, values.slice(at, at + MAX_ASKED));
      yield* run.open(from, { filter: restriction === undefined ? equality : { $and: [equality, restriction] } });
    }
  }

  async function search(doc: Doc, run: Run, gauge: MemoryCharge): Promise<Doc[]> {
    const { budget, scope } = run;
    scope.root = doc;
    const results: Doc[] = [];
    const visited = new Set<unknown>();
    const asked = new Set<unknown>();
    const startValue = start.evaluate(doc, scope);
    let frontier = fresh(Array.isArray(startValue) ? startValue : [startValue ?? null], asked);
    for (let depth = 0; depth <= maxDepth! && frontier.length > 0; depth++) {
      const next: unknown[] = [];
      for await (const batch of reached(frontier, run)) {
        for (const found of batch) {
          const id = keyOf(found['_id']);
          if (visited.has(id)) continue;
          visited.add(id);
          gauge.add(found);
          results.push(depthPath === null ? found : withPath(found, depthPath, BigInt(depth)));
          const value = readPath(found, connectFrom);
          if (Array.isArray(value)) for (const item of value as unknown[]) next.push(item);
          else if (!isNullish(value)) next.push(value);
          if (budget.tick(1)) await budget.pause();
        }
      }
      frontier = fresh(next, asked);
    }
    return results;
  }

  return {
    async *run(source, run) {
      for await (const batch of source) {
        yield* joinEach(
          batch,
          run,
          (doc, _i, gauge) => search(doc, run, gauge),
          (doc, found) => withPath(doc, as, found),
        );
      }
    },
    reads: unionOf(start.fields, new Set([as[0]!])),
    replaces: false,
  };
};

/** The values not asked for yet. */
function fresh(values: readonly unknown[], asked: Set<unknown>): unknown[] {
  return values.filter((value) => {
    const key = keyOf(value);
    if (asked.has(key)) return false;
    asked.add(key);
    return true;
  });
}
