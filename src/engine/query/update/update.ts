import { type Doc, isDocument, setField } from '../../codec/document.js';
import { badValue, CODES, failedToParse, immutableField, pathNotViable, refusal } from '../../errors.js';
import { type ExpressionContext, openExpressionContext } from '../expression.js';
import { compileFilter, isOperatorDocument } from '../match/match.js';
import { openScope } from '../operators/operator.js';
import { compileDocumentStages } from '../document-stages.js';
import { indexOfPart, splitPath } from '../values/path.js';
import { type UpdateContext, UPDATE_OPERATORS } from './update-operators.js';
import {
  ABSENT,
  changeAt,
  comparePaths,
  parseUpdatePath,
  type PathContext,
  partText,
  pathText,
  refuseConflicts,
  type UpdatePart,
} from './update-path.js';
import { equalValues, identicalValues } from '../values/compare.js';
import { fieldOf, typeOf } from '../values/value.js';

export type { UpdateContext } from './update-operators.js';

export interface UpdateOptions {
  readonly arrayFilters?: readonly Doc[];
  /** The variables of the command, for pipeline updates. */
  readonly environment?: ExpressionContext;
}

export interface Updated {
  /** A new document; the original one when nothing changed. */
  readonly doc: Doc;
  readonly changed: boolean;
}

/** A compiled update. */
export interface Update {
  readonly kind: 'operators' | 'replacement' | 'pipeline';
  /** True when a path has the positional `$`: the filter's `match` has to supply `arrayIndex`. */
  readonly positional: boolean;
  /**
   * The only top-level fields that `apply` reads or changes; the document it is given needs no others. Null = all, and
   * always so when `_id` is among them.
   */
  readonly touches: ReadonlySet<string> | null;
  /** Refuses a changed `_id` (66) and whatever the operators refuse; the given document is never modified. */
  apply(doc: Doc, context: UpdateContext): Updated;
  /** The document to insert when nothing matched `filter`; it may lack an `_id`. */
  upsert(filter: Doc, context: UpdateContext): Doc;
}

/** Every operator of an update document. */
export const supportedUpdateOperators: readonly string[] = [...Object.keys(UPDATE_OPERATORS), '$rename'].sort();

/** Compiles operators, a replacement document, or a pipeline (a list of stages) once for any number of documents. */
export function compileUpdate(update: Doc | readonly Doc[], options: UpdateOptions = {}): Update {
  const { arrayFilters = [] } = options;
  if (Array.isArray(update)) {
    if (arrayFilters.length > 0) throw failedToParse('Cannot specify arrayFilters and a pipeline update');
    return compilePipelineUpdate(update as readonly Doc[], options.environment ?? openExpressionContext());
  }
  const names = Object.keys(update);
  if (names[0]?.startsWith('$') === true) return compileOperators(update as Doc, arrayFilters);
  if (arrayFilters.length > 0) throw failedToParse('Cannot specify arrayFilters and a replacement document');
  return compileReplacement(update as Doc);
}

function withIdFirst(doc: Doc, id: unknown): Doc {
  const result: Doc = {};
  if (id !== undefined) result['_id'] = id;
  for (const name of Object.keys(doc)) if (name !== '_id') setField(result, name, doc[name]);
  return result;
}

/** The outcome of an update that made a whole document: `_id` stays, comes first and must not have changed. */
function settle(original: Doc, result: Doc): Updated {
  const id = original['_id'];
  const newId = fieldOf(result, '_id');
  if (id !== undefined && newId !== undefined && !equalValues(id, newId)) {
    throw immutableField("Performing an update on the path '_id' would modify the immutable field '_id'");
  }
  const doc = withIdFirst(result, id ?? newId);
  return identicalValues(original, doc) ? { doc: original, changed: false } : { doc, changed: true };
}

function compileReplacement(replacement: Doc): Update {
  for (const name of Object.keys(replacement)) {
    if (name.startsWith('$')) {
      throw refusal(
        CODES.DollarPrefixedFieldName,
        `The dollar ($) prefixed field '${name}' is not allowed in a replacement document`,
      );
    }
  }
  return {
    kind: 'replacement',
    positional: false,
    touches: null,
    apply: (doc) => settle(doc, replacement),
    upsert(filter) {
      const id = upsertDocument(filter, true)['_id'];
      return settle(id === undefined ? {} : { _id: id }, replacement).doc;
    },
  };
}

const UPDATE_STAGES = new Set(['$addFields', '$set', '$project', '$unset', '$replaceRoot', '$replaceWith']);

function compilePipelineUpdate(stages: readonly Doc[], environment: ExpressionContext): Update {
  for (const stage of stages) {
    const [name] = isDocument(stage) ? Object.keys(stage) : [];
    if (name !== undefined && name.startsWith('$') && !UPDATE_STAGES.has(name)) {
      throw refusal(CODES.InvalidOptions, `${name} is not allowed to be used within an update`);
    }
  }
  const transform = compileDocumentStages(stages, environment);
  const apply = (doc: Doc, { now }: UpdateContext): Updated => {
    const scope = openScope({ now: environment.now ?? now });
    return settle(doc, transform(doc, scope));
  };
  return {
    kind: 'pipeline',
    positional: false,
    touches: null,
    apply,
    upsert: (filter, context) => apply(upsertDocument(filter), context).doc,
  };
}

interface Step {
  readonly path: readonly UpdatePart[];
  readonly creates: boolean;
  readonly onInsertOnly: boolean;
  /** Absent = always. */
  applies?(original: Doc): boolean;
  change(current: unknown, context: UpdateContext, original: Doc): unknown;
}

function compileOperators(update: Doc, arrayFilters: readonly Doc[]): Update {
  const steps: Step[] = [];
  for (const name of Object.keys(update)) {
    const operator = Object.hasOwn(UPDATE_OPERATORS, name) ? UPDATE_OPERATORS[name] : undefined;
    if (operator === undefined && name !== '$rename') {
      throw failedToParse(
        `Unknown modifier: ${name}. Expected a valid update modifier or pipeline-style update specified as an array`,
      );
    }
    const operands = update[name];
    if (!isDocument(operands)) {
      throw failedToParse(
        `Modifiers operate on fields but we found another type for ${name}: expected {${name}: {<field>: ...}}`,
      );
    }
    for (const path of Object.keys(operands)) {
      if (operator === undefined) {
        steps.push(...renameSteps(path, operands[path]));
        continue;
      }
      const change = operator.compile(operands[path], path);
      steps.push({
        path: parseUpdatePath(path),
        creates: operator.creates,
        onInsertOnly: operator.onInsertOnly === true,
        change,
      });
    }
  }
  steps.sort((a, b) => comparePaths(a.path, b.path));
  refuseConflicts(steps.map((step) => step.path));
  const filters = compileArrayFilters(arrayFilters, steps);
  const positional = steps.some((step) => step.path.some((part) => part.kind === 'matched'));

  const apply = (doc: Doc, context: UpdateContext): Updated => {
    const place: PathContext = { owned: new Set(), arrayIndex: context.arrayIndex, filters };
    if (positional && context.arrayIndex !== undefined) refuseResolvedConflicts(steps, context.arrayIndex);
    let result = doc;
    for (const step of steps) {
      if (step.onInsertOnly && !context.inserting) continue;
      if (step.applies?.(doc) === false) continue;
      const change = (current: unknown) => step.change(current, context, doc);
      result = changeAt(result, step.path, 0, change, step.creates, place) as Doc;
    }
    if (result === doc) return { doc, changed: false };
    const id = doc['_id'];
    if (id !== undefined && !equalValues(result['_id'], id)) {
      throw immutableField("Performing an update on the path '_id' would modify the immutable field '_id'");
    }
    return { doc: result, changed: true };
  };
  return {
    kind: 'operators',
    positional,
    touches: touchedFields(steps),
    apply,
    upsert(filter, context) {
      const { doc } = apply(upsertDocument(filter), { ...context, inserting: true });
      return withIdFirst(doc, doc['_id']);
    },
  };
}

/** The first part of a path is always a name. */
function touchedFields(steps: readonly Step[]): ReadonlySet<string> | null {
  const fields = new Set(steps.map(({ path }) => partText(path[0]!)));
  return fields.has('_id') ? null : fields;
}

/** `a.$` and `a.0` may turn out to be the same element. */
function refuseResolvedConflicts(steps: readonly Step[], arrayIndex: number): void {
  if (steps.length < 2) return;
  const resolved = steps.map(({ path }) =>
    path.map((part): UpdatePart => (part.kind === 'matched' ? { kind: 'name', name: String(arrayIndex) } : part)),
  );
  refuseConflicts(resolved.sort(comparePaths));
}

/** A rename removes the source and sets the target to what the source was before the update. */
function renameSteps(from: string, to: unknown): Step[] {
  if (typeof to !== 'string') throw badValue(`The 'to' field for $rename must be a string: ${from}`);
  const source = parseUpdatePath(from);
  const target = parseUpdatePath(to);
  if ([...source, ...target].some((part) => part.kind !== 'name')) {
    throw badValue(`The source and target field for $rename may not be dynamic: ${from}, ${to}`);
  }
  if (from === to) throw badValue(`The source and target field for $rename must differ: ${from}`);
  const names = splitPath(from);
  const targetNames = splitPath(to);
  const read = (doc: Doc, path: readonly string[], which: string): unknown => {
    let value: unknown = doc;
    for (const name of path) {
      if (Array.isArray(value)) {
        // What is not there is not renamed, whatever it would be an element of.
        if (which === 'source' && value[indexOfPart(name)] === undefined) return undefined;
        throw badValue(`The ${which} field of $rename cannot be an array element: ${path.join('.')}`);
      }
      if (value === undefined) return undefined;
      if (!isDocument(value)) {
        if (which === 'target') return undefined;
        throw pathNotViable(`Cannot use the part (${name}) of (${path.join('.')}) to traverse the element`);
      }
      value = fieldOf(value, name);
    }
    return value;
  };
  return [
    {
      path: source,
      creates: false,
      onInsertOnly: false,
      change: (current) => (current === undefined ? current : ABSENT),
    },
    {
      path: target,
      creates: true,
      onInsertOnly: false,
      applies: (original) => read(original, names, 'source') !== undefined,
      change(_current, _context, original) {
        read(original, targetNames, 'target');
        return read(original, names, 'source');
      },
    },
  ];
}

function compileArrayFilters(
  arrayFilters: readonly Doc[],
  steps: readonly Step[],
): ReadonlyMap<string, (element: unknown) => boolean> {
  const filters = new Map<string, (element: unknown) => boolean>();
  for (const spec of arrayFilters) {
    const identifier = identifierOf(spec);
    if (filters.has(identifier)) {
      throw failedToParse(`Found multiple array filters with the same top-level field name ${identifier}`);
    }
    const filter = compileFilter(spec);
    filters.set(identifier, (element) => filter.matches({ [identifier]: element }));
  }
  const used = new Set<string>();
  for (const { path } of steps) {
    for (const part of path) {
      if (part.kind !== 'filtered') continue;
      used.add(part.identifier);
      if (!filters.has(part.identifier)) {
        throw badValue(`No array filter found for identifier '${part.identifier}' in path '${pathText(path)}'`);
      }
    }
  }
  for (const identifier of filters.keys()) {
    if (!used.has(identifier)) {
      throw failedToParse(`The array filter for identifier '${identifier}' was not used in the update`);
    }
  }
  return filters;
}

/** The one name that all conditions of an array filter start with. */
function identifierOf(spec: Doc): string {
  const found = new Set<string>();
  const collect = (filter: Doc): void => {
    for (const name of Object.keys(filter)) {
      if (!name.startsWith('$')) found.add(splitPath(name)[0]!);
      else if (Array.isArray(filter[name])) for (const item of filter[name]) if (isDocument(item)) collect(item);
    }
  };
  collect(spec);
  const [identifier] = found;
  if (identifier === undefined || found.size > 1) {
    throw failedToParse(
      `Error parsing array filter: expected a single top-level field name, found ${[...found].join(', ') || 'none'}`,
    );
  }
  if (!/^[a-z][A-Za-z0-9]*$/.test(identifier)) {
    throw badValue(
      `Error parsing array filter: '${identifier}' must begin with a lowercase letter and be alphanumeric`,
    );
  }
  return identifier;
}

/**
 * The document that an upsert starts from: the equalities of the filter's conjunction. Two for one path, or one below
 * another, are refused (54). With `onlyId` (replacements) nothing but `_id` is looked for.
 */
function upsertDocument(filter: Doc, onlyId = false): Doc {
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
