import { type Doc, isDocument } from '../codec/document.js';
import { cannotCreateIndex, CODES, EngineError, typeMismatch } from '../errors.js';
import { compileFilter } from '../query/match/match.js';
import { equalValues } from '../query/values/compare.js';
import { numberOf } from '../query/values/value.js';
import type { IndexDefinition } from '../storage/keys/index-definition.js';
import { isGeoKey } from '../storage/catalog/prepare-collection.js';
import { presentCollation } from './collation-spec.js';
import { collationOption, flagOption, optionReader } from './options.js';

const MAX_INDEXES = 64;
const MAX_FIELDS = 32;
const MAX_EXPIRE_SECONDS = 0x7fffffff;

const SPEC_FIELDS = new Set([
  'key',
  'name',
  'v',
  'unique',
  'sparse',
  'hidden',
  'background',
  'partialFilterExpression',
  'expireAfterSeconds',
  'collation',
  'ns',
  '2dsphereIndexVersion',
]);

/** Operators that MongoDB allows in the condition of a partial index, and nothing more. */
const PARTIAL_OPERATORS = new Set(['$eq', '$exists', '$gt', '$gte', '$lt', '$lte', '$type', '$in']);

const readSwitches = optionReader(
  { unique: flagOption(false), sparse: flagOption(false), hidden: flagOption(false), collation: collationOption },
  () => true,
);

/** Reads one index specification; refuses what MongoDB refuses (67, 72, 86, 197) and kinds that are not supported. */
export function readIndexSpec(spec: unknown): Omit<IndexDefinition, 'id'> {
  if (!isDocument(spec)) throw typeMismatch('The elements of the indexes array must be documents');
  refuseText(spec['key']);
  for (const field of Object.keys(spec)) {
    if (!SPEC_FIELDS.has(field)) {
      throw new EngineError(
        CODES.InvalidIndexSpecificationOption,
        `The field '${field}' is not valid for an index specification.`,
      );
    }
  }
  const key = readKey(spec['key']);
  const { unique, hidden, collation, ...switches } = readSwitches(spec, 'createIndexes.indexes');
  const name = spec['name'] ?? defaultName(key);
  if (typeof name !== 'string' || name === '') throw cannotCreateIndex('index names must be non-empty strings');
  // An index of places leaves out documents without one anyway.
  const sparse = switches.sparse && !isGeoKey(key);
  const partial = spec['partialFilterExpression'];
  const expireAfterSeconds = readExpiry(spec, key);
  if (isGeoKey(key) && unique) throw cannotCreateIndex('A 2dsphere index cannot be unique');
  if (partial !== undefined) {
    if (!isDocument(partial)) throw typeMismatch("'partialFilterExpression' must be a document");
    if (sparse) throw cannotCreateIndex("cannot mix 'partialFilterExpression' and 'sparse' options");
    checkPartial(partial);
    compileFilter(partial);
  }
  return {
    name,
    key,
    unique,
    sparse,
    hidden,
    ...(partial === undefined ? {} : { partialFilterExpression: partial }),
    ...(expireAfterSeconds === undefined ? {} : { expireAfterSeconds }),
    ...(collation === null ? {} : { collation: { locale: collation.locale, strength: collation.strength } }),
    state: 'ready',
    multikey: 0,
    cut: false,
  };
}

/** First of all: an index of texts has options of its own, which are not what is wrong with it. */
function refuseText(key: unknown): void {
  if (!isDocument(key)) return;
  const path = Object.keys(key).find((each) => key[each] === 'text');
  if (path !== undefined) throw cannotCreateIndex(`Unknown or unsupported index type 'text' for the field '${path}'`);
}

function readKey(key: unknown): Doc {
  if (!isDocument(key)) throw typeMismatch("The field 'key' must be an object");
  const paths = Object.keys(key);
  if (paths.length === 0) throw cannotCreateIndex('Index keys cannot be empty.');
  if (paths.length > MAX_FIELDS) throw new EngineError(13103, 'too many compound keys');
  for (const path of paths) {
    const direction = key[path];
    if (typeof direction === 'string' && direction !== '2dsphere') {
      throw cannotCreateIndex(`Unknown or unsupported index type '${direction}' for the field '${path}'`);
    }
    if (direction === '2dsphere' && (paths.length > 1 || path === '_id')) {
      throw cannotCreateIndex(`A 2dsphere index of this engine has one field, which is not _id: ${path}`);
    }
    const number = direction === '2dsphere' ? 1 : numberOf(direction);
    if (number === null || number === 0 || Number.isNaN(number)) {
      throw cannotCreateIndex(`Values in the index key pattern must be numbers other than 0: ${path}`);
    }
    if (path === '' || path.split('.').includes('')) {
      throw cannotCreateIndex('Index keys cannot contain an empty field.');
    }
    if (path.split('.').some((part) => part.startsWith('$'))) {
      throw cannotCreateIndex(`Index key contains an illegal field name: field name starts with '$': ${path}`);
    }
  }
  return key;
}

/** MongoDB's default name, such as `a_1_b_-1`. */
function defaultName(key: Doc): string {
  return Object.keys(key)
    .map((path) => `${path}_${isGeoKey(key) ? '2dsphere' : String(numberOf(key[path]))}`)
    .join('_');
}

function readExpiry(spec: Doc, key: Doc): number | undefined {
  const value = spec['expireAfterSeconds'];
  if (value === undefined || value === null) return undefined;
  const seconds = readExpirySeconds(value, CODES.CannotCreateIndex);
  if (Object.keys(key).length > 1 || '_id' in key || isGeoKey(key)) {
    throw cannotCreateIndex('TTL indexes are single-field indexes, compound indexes and _id do not support TTL');
  }
  return seconds;
}

/** After how many whole seconds documents expire; anything else is refused with `code`. */
export function readExpirySeconds(value: unknown, code: number): number {
  const seconds = numberOf(value) ?? NaN;
  if (seconds >= 0 && seconds <= MAX_EXPIRE_SECONDS) return Math.trunc(seconds);
  throw new EngineError(code, `TTL index 'expireAfterSeconds' option must be within 0 and ${MAX_EXPIRE_SECONDS}`);
}

function checkPartial(filter: Doc): void {
  for (const [name, condition] of Object.entries(filter)) {
    if (name === '$and' || name === '$or') {
      if (!Array.isArray(condition)) throw cannotCreateIndex(`${name} must be an array`);
      for (const part of condition as unknown[]) {
        if (!isDocument(part)) throw cannotCreateIndex(`${name} must contain documents`);
        checkPartial(part);
      }
    } else if (name.startsWith('$')) {
      throw cannotCreateIndex(`Expression not supported in partial index: ${name}`);
    } else if (isDocument(condition)) {
      for (const operator of Object.keys(condition)) {
        if (!operator.startsWith('$')) break;
        const isAllowed = PARTIAL_OPERATORS.has(operator);
        if (!isAllowed || (operator === '$exists' && condition[operator] === false)) {
          throw cannotCreateIndex(`Expression not supported in partial index: ${operator}`);
        }
      }
    }
  }
}

/**
 * The specifications that are not there yet. An existing index with the same name or key but other options is refused
 * (86 and 85), as is the 65th index (67).
 */
export function newIndexes(
  existing: readonly IndexDefinition[],
  specs: readonly Omit<IndexDefinition, 'id'>[],
): Omit<IndexDefinition, 'id'>[] {
  const all: Omit<IndexDefinition, 'id'>[] = [...existing];
  const added: Omit<IndexDefinition, 'id'>[] = [];
  for (const spec of specs) {
    if (isIdKey(spec.key)) continue;
    if (spec.name === '_id_') throw cannotCreateIndex("The index name '_id_' is reserved for the _id index");
    const sameName = all.find((index) => index.name === spec.name);
    if (sameName !== undefined) {
      if (sameKey(sameName.key, spec.key) && sameOptions(sameName, spec)) continue;
      throw sameKey(sameName.key, spec.key)
        ? new EngineError(
            CODES.IndexKeySpecsConflict,
            `An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: ${spec.name}`,
          )
        : new EngineError(
            CODES.IndexKeySpecsConflict,
            `An existing index has the same name as the requested index: ${spec.name}`,
          );
    }
    const sameShape = all.find(
      (index) =>
        sameKey(index.key, spec.key) &&
        equalValues(index.collation, spec.collation) &&
        equalValues(index.partialFilterExpression, spec.partialFilterExpression),
    );
    if (sameShape !== undefined) {
      throw new EngineError(
        CODES.IndexOptionsConflict,
        `Index already exists with a different name: ${sameShape.name}`,
      );
    }
    all.push(spec);
    added.push(spec);
  }
  if (all.length + 1 > MAX_INDEXES) throw cannotCreateIndex(`add index fails, too many indexes for the collection`);
  return added;
}

function isIdKey(key: Doc): boolean {
  return Object.keys(key).length === 1 && numberOf(key['_id']) === 1;
}

function sameKey(a: Doc, b: Doc): boolean {
  const paths = Object.keys(a);
  const others = Object.keys(b);
  return (
    paths.length === others.length &&
    isGeoKey(a) === isGeoKey(b) &&
    paths.every((path, n) => others[n] === path && numberOf(a[path])! < 0 === numberOf(b[path])! < 0)
  );
}

function sameOptions(a: Omit<IndexDefinition, 'id'>, b: Omit<IndexDefinition, 'id'>): boolean {
  return (
    a.unique === b.unique &&
    a.sparse === b.sparse &&
    a.expireAfterSeconds === b.expireAfterSeconds &&
    equalValues(a.collation, b.collation) &&
    equalValues(a.partialFilterExpression, b.partialFilterExpression)
  );
}

/** An index as `listIndexes` shows it. */
export function presentIndex(index: IndexDefinition): Doc {
  return {
    v: 2,
    key: index.key,
    name: index.name,
    ...(isGeoKey(index.key) ? { '2dsphereIndexVersion': 3 } : {}),
    ...(index.unique ? { unique: true } : {}),
    ...(index.sparse ? { sparse: true } : {}),
    ...(index.hidden ? { hidden: true } : {}),
    ...(index.partialFilterExpression === undefined ? {} : { partialFilterExpression: index.partialFilterExpression }),
    ...(index.expireAfterSeconds === undefined ? {} : { expireAfterSeconds: index.expireAfterSeconds }),
    ...(index.collation === undefined ? {} : { collation: presentCollation(index.collation) }),
  };
}
