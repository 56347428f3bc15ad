import { type Doc, isDocument } from '../codec/document.js';
import { CODES, refusal } from '../errors.js';
import { compileExpression, type ExpressionContext } from './expression.js';
import type { Scope } from './operators/operator.js';
import { splitPath } from './values/path.js';
import { compileAddFields, compileProjection } from './project.js';
import { typeOf } from './values/value.js';
import { weigh } from './values/weight.js';

/** A stage that turns each document into one other. */
export interface DocumentStage {
  apply: (doc: Doc, scope: Scope) => Doc;
  /** The input's top-level fields that the output is made of; null = possibly all of them. */
  readonly reads: ReadonlySet<string> | null;
  /** True when fields it does not read are dropped, so that no stage before it needs them. */
  readonly replaces: boolean;
  /** Set when all it does is to take something out of these top-level fields. */
  readonly removes?: ReadonlySet<string>;
  /** True if its output may be heavier than its input. */
  readonly composes: boolean;
}

export type DocumentStageCompiler = (spec: unknown, environment: ExpressionContext) => DocumentStage;

function addFields(spec: unknown, environment: ExpressionContext): DocumentStage {
  if (!isDocument(spec)) throw refusal(40272, '$addFields specification stage must be an object');
  const { apply, fields } = compileAddFields(spec, environment);
  return { apply: (doc, scope) => apply(doc, null, scope), reads: fields, replaces: false, composes: true };
}

function project(spec: unknown, environment: ExpressionContext): DocumentStage {
  if (!isDocument(spec)) throw refusal(15969, '$project specification must be an object');
  const { apply, fields, computes } = compileProjection(spec, { environment, aggregation: true });
  return {
    apply: (doc, scope) => apply(doc, null, scope),
    reads: fields ?? new Set(),
    replaces: fields !== null,
    composes: computes,
  };
}

function unset(spec: unknown, environment: ExpressionContext): DocumentStage {
  const names: unknown[] = Array.isArray(spec) ? spec : [spec];
  if (names.length === 0) {
    throw refusal(31119, '$unset specification must be a string or an array with at least one field');
  }
  const projection: Doc = {};
  for (const name of names) {
    if (typeof name !== 'string') throw refusal(31120, '$unset specification must be a string or an array of strings');
    if (name.startsWith('$')) throw refusal(16410, "FieldPath field names may not start with '$'.");
    projection[name] = false;
  }
  const roots = Object.keys(projection).map((path) => splitPath(path)[0]!);
  return { ...project(projection, environment), removes: new Set(roots) };
}

function replaceRoot(spec: unknown, environment: ExpressionContext): DocumentStage {
  if (!isDocument(spec)) throw refusal(40229, 'expected an object as specification for $replaceRoot stage');
  for (const name of Object.keys(spec)) {
    if (name !== 'newRoot') {
      throw refusal(CODES.IDLUnknownField, `BSON field '$replaceRoot.${name}' is an unknown field.`);
    }
  }
  if (!Object.hasOwn(spec, 'newRoot')) {
    throw refusal(CODES.IDLFailedToParse, "BSON field '$replaceRoot.newRoot' is missing but a required field");
  }
  return replaceWith(spec['newRoot'], environment);
}

function replaceWith(spec: unknown, environment: ExpressionContext): DocumentStage {
  const { evaluate, fields } = compileExpression(spec, environment);
  return {
    apply(doc, scope) {
      scope.root = doc;
      const root = evaluate(doc, scope);
      if (isDocument(root)) return root;
      throw refusal(
        40228,
        `'newRoot' expression must evaluate to an object, but resulting value was of type ${typeOf(root)}`,
      );
    },
    reads: fields,
    replaces: fields !== null,
    composes: true,
  };
}

/** The stages that pipeline updates may use as well. */
export const DOCUMENT_STAGES: Readonly<Record<string, DocumentStageCompiler>> = {
  $addFields: addFields,
  $set: addFields,
  $project: project,
  $unset: unset,
  $replaceRoot: replaceRoot,
  $replaceWith: replaceWith,
};

/**
 * Compiles a list of such stages into one function; a stage must have exactly one field (40323), and be known (40324).
 */
export function compileDocumentStages(
  stages: readonly unknown[],
  environment: ExpressionContext,
): (doc: Doc, scope: Scope) => Doc {
  const compiled = stages.map((stage) => {
    const names = isDocument(stage) ? Object.keys(stage) : [];
    if (names.length !== 1) {
      throw refusal(40323, 'A pipeline stage specification object must contain exactly one field.');
    }
    const name = names[0]!;
    if (!Object.hasOwn(DOCUMENT_STAGES, name)) throw refusal(40324, `Unrecognized pipeline stage name: '${name}'`);
    return DOCUMENT_STAGES[name]!((stage as Doc)[name], environment);
  });
  return (doc, scope) =>
    compiled.reduce((current, stage) => {
      const next = stage.apply(current, scope);
      if (stage.composes) weigh(next);
      return next;
    }, doc);
}
