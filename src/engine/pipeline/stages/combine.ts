import { type Doc, isDocument, setField } from '../../codec/document.js';
import { CODES, failedToParse, refusal } from '../../errors.js';
import { compileExpression } from '../../query/expression.js';
import { typeOf } from '../../query/values/value.js';
import { collect, MemoryCharge, inBatches, type StageCompiler, unionOf } from '../stage.js';

/** Appends the documents of another collection, possibly through a pipeline. */
export const unionWith: StageCompiler = (spec, tools) => {
  const options: Doc = isDocument(spec) ? spec : { coll: spec };
  for (const name of Object.keys(options)) {
    if (name !== 'coll' && name !== 'pipeline') {
      throw refusal(CODES.IDLUnknownField, `BSON field '$unionWith.${name}' is an unknown field.`);
    }
  }
  const inner = tools.compileInner(options['pipeline'] ?? []).pipeline;
  const collection = options['coll'];
  if (collection === undefined ? !inner.startsAlone : typeof collection !== 'string' || collection === '') {
    throw failedToParse(`$unionWith needs the name of a collection, found ${typeOf(collection)}`);
  }
  const name = collection === undefined ? null : (collection as string);
  if (name !== null) tools.joins(name);
  return {
    async *run(source, run) {
      yield* source;
      yield* inner.read(name, { ...run, scope: { ...run.scope, root: {}, vars: [...run.scope.vars] } });
    },
    reads: new Set(),
    replaces: false,
  };
};

const NOT_IN_FACET = new Set(['$facet', '$out', '$merge', '$documents', '$collStats', '$indexStats', '$geoNear']);

/** Runs several pipelines over the same documents, which are held in memory until all have run. */
export const facet: StageCompiler = (spec, tools) => {
  if (!isDocument(spec) || Object.keys(spec).length === 0) {
    throw refusal(40169, 'the $facet specification must be a non-empty object');
  }
  const names = Object.keys(spec);
  const pipelines = names.map((name) => {
    if (name.startsWith('$') || name.includes('.')) throw refusal(16410, `invalid $facet name: ${name}`);
    const { pipeline } = tools.compileInner(spec[name]);
    const forbidden = pipeline.names.find((stage) => NOT_IN_FACET.has(stage));
    if (forbidden !== undefined) throw refusal(40600, `${forbidden} is not allowed to be used within a $facet stage`);
    return pipeline;
  });
  return {
    async *run(source, run) {
      const gauge = new MemoryCharge(run.budget);
      try {
        const docs = await collect(source, run, gauge);
        const result: Doc = {};
        for (const [i, name] of names.entries()) {
          setField(result, name, await collect(pipelines[i]!.over(inBatches(docs), run), run, gauge));
        }
        yield [result];
      } finally {
        gauge.close();
      }
    },
    reads: unionOf(...pipelines.map((pipeline) => pipeline.fields)),
    replaces: true,
  };
};

/** Makes documents from an expression instead of a collection. */
export const documents: StageCompiler = (spec, { environment }) => {
  const { evaluate } = compileExpression(spec, environment);
  return {
    async *run(_source, { scope }) {
      const docs = evaluate({}, scope);
      if (!Array.isArray(docs)) throw refusal(5858203, `$documents must evaluate to an array, found ${typeOf(docs)}`);
      for (const doc of docs) {
        if (!isDocument(doc)) throw refusal(40228, `an element of $documents must be an object, found ${typeOf(doc)}`);
      }
      yield* inBatches(docs as Doc[]);
    },
    reads: new Set(),
    replaces: true,
  };
};
