import { type Doc, isDocument } from '../../codec/document.js';
import { badValue, failedToParse, typeMismatch } from '../../errors.js';
import { compilePattern } from '../patterns/regex.js';
import { compareValues, equalValues } from '../values/compare.js';
import { integerOf, isNumber, isTypeName, numberOf, typeOf } from '../values/value.js';
import { keyOf } from '../values/value-key.js';

type Check = (value: unknown) => boolean;

const JSON_TYPES: Readonly<Record<string, readonly string[]>> = {
  object: ['object'],
  array: ['array'],
  number: ['int', 'long', 'double', 'decimal'],
  boolean: ['bool'],
  string: ['string'],
  null: ['null'],
};
const ANNOTATIONS = new Set(['title', 'description', '$schema', '$comment']);

/** Compiles `$jsonSchema` (the keywords of draft 4 that MongoDB knows, plus `bsonType`). */
export function compileSchema(schema: Doc): (doc: Doc) => boolean {
  return compileNode(schema, 0);
}

function compileNode(schema: unknown, depth: number): Check {
  if (!isDocument(schema)) throw typeMismatch('$jsonSchema must be an object');
  if (depth > 100) throw badValue('$jsonSchema is nested too deeply');
  const checks: Check[] = [];
  for (const name of Object.keys(schema)) {
    if (ANNOTATIONS.has(name)) continue;
    const keyword = Object.hasOwn(KEYWORDS, name) ? KEYWORDS[name] : undefined;
    if (keyword === undefined) throw failedToParse(`Unknown $jsonSchema keyword: ${name}`);
    const check = keyword(schema[name], schema, (inner) => compileNode(inner, depth + 1));
    if (check !== null) checks.push(check);
  }
  return (value) => checks.every((check) => check(value));
}

type Keyword = (operand: unknown, schema: Doc, compile: (inner: unknown) => Check) => Check | null;

function nonNegative(operand: unknown, name: string): number {
  const number = integerOf(operand);
  if (number === null || number < 0) {
    throw failedToParse(`$jsonSchema keyword '${name}' must be a non-negative integer`);
  }
  return number;
}

function list(operand: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(operand) || operand.length === 0) {
    throw typeMismatch(`$jsonSchema keyword '${name}' must be a non-empty array`);
  }
  return operand;
}

function names(operand: unknown, name: string): string[] {
  return list(operand, name).map((item) => {
    if (typeof item !== 'string') throw typeMismatch(`$jsonSchema keyword '${name}' must be an array of strings`);
    return item;
  });
}

function children(operand: unknown, name: string): Doc {
  if (!isDocument(operand)) throw typeMismatch(`$jsonSchema keyword '${name}' must be an object`);
  return operand;
}

function typeCheck(operand: unknown, name: string, known: (alias: string) => readonly string[] | null): Check {
  const wanted = new Set<string>();
  for (const item of Array.isArray(operand) ? operand : [operand]) {
    if (typeof item !== 'string') throw typeMismatch(`$jsonSchema keyword '${name}' must be a string or strings`);
    const types = known(item);
    if (types === null) throw badValue(`Unknown type name alias: ${item}`);
    for (const type of types) wanted.add(type);
  }
  return (value) => wanted.has(typeOf(value));
}

function bound(name: string, accepts: (order: number, strict: boolean) => boolean, strictName: string): Keyword {
  return (operand, schema) => {
    if (!isNumber(operand)) throw typeMismatch(`$jsonSchema keyword '${name}' must be a number`);
    const strict = schema[strictName] === true;
    return (value) => !isNumber(value) || accepts(compareValues(value, operand), strict);
  };
}

const KEYWORDS: Readonly<Record<string, Keyword>> = {
  bsonType: (operand) =>
    typeCheck(operand, 'bsonType', (alias) => {
      if (alias === 'number') return JSON_TYPES['number']!;
      return isTypeName(alias) ? [alias] : null;
    }),
  type: (operand) =>
    typeCheck(operand, 'type', (alias) => (Object.hasOwn(JSON_TYPES, alias) ? JSON_TYPES[alias]! : null)),
  enum(operand) {
    const allowed = new Set(list(operand, 'enum').map(keyOf));
    return (value) => allowed.has(keyOf(value));
  },
  required(operand) {
    const wanted = names(operand, 'required');
    return (value) => !isDocument(value) || wanted.every((name) => Object.hasOwn(value, name));
  },
  properties(operand, _schema, compile) {
    const entries = Object.entries(children(operand, 'properties')).map(
      ([name, schema]) => [name, compile(schema)] as const,
    );
    return (value) =>
      !isDocument(value) || entries.every(([name, check]) => !Object.hasOwn(value, name) || check(value[name]));
  },
  patternProperties(operand, _schema, compile) {
    const entries = Object.entries(children(operand, 'patternProperties')).map(
      ([pattern, schema]) => [compilePattern(pattern, ''), compile(schema)] as const,
    );
    return (value) =>
      !isDocument(value) ||
      Object.keys(value).every((name) =>
        entries.every(([pattern, check]) => !pattern.test(name) || check(value[name])),
      );
  },
  additionalProperties(operand, schema, compile) {
    const check = typeof operand === 'boolean' ? () => operand : compile(operand);
    const declared = new Set(Object.keys(isDocument(schema['properties']) ? schema['properties'] : {}));
    const patterns = Object.keys(isDocument(schema['patternProperties']) ? schema['patternProperties'] : {}).map(
      (pattern) => compilePattern(pattern, ''),
    );
    return (value) =>
      !isDocument(value) ||
      Object.keys(value).every(
        (name) => declared.has(name) || patterns.some((pattern) => pattern.test(name)) || check(value[name]),
      );
  },
  dependencies(operand, _schema, compile) {
    const entries = Object.entries(children(operand, 'dependencies')).map(([name, dependency]): [string, Check] => {
      if (!Array.isArray(dependency)) return [name, compile(dependency)];
      const wanted = names(dependency, 'dependencies');
      return [name, (value) => wanted.every((other) => Object.hasOwn(value as Doc, other))];
    });
    return (value) =>
      !isDocument(value) || entries.every(([name, check]) => !Object.hasOwn(value, name) || check(value));
  },
  minProperties(operand) {
    const least = nonNegative(operand, 'minProperties');
    return (value) => !isDocument(value) || Object.keys(value).length >= least;
  },
  maxProperties(operand) {
    const most = nonNegative(operand, 'maxProperties');
    return (value) => !isDocument(value) || Object.keys(value).length <= most;
  },
  minimum: bound('minimum', (order, strict) => (strict ? order > 0 : order >= 0), 'exclusiveMinimum'),
  maximum: bound('maximum', (order, strict) => (strict ? order < 0 : order <= 0), 'exclusiveMaximum'),
  exclusiveMinimum: () => null,
  exclusiveMaximum: () => null,
  multipleOf(operand) {
    const divisor = numberOf(operand);
    if (divisor === null || divisor <= 0) throw failedToParse("$jsonSchema keyword 'multipleOf' must be positive");
    return (value) => {
      const number = numberOf(value);
      return number === null || number % divisor === 0;
    };
  },
  minLength(operand) {
    const least = nonNegative(operand, 'minLength');
    return (value) => typeof value !== 'string' || [...value].length >= least;
  },
  maxLength(operand) {
    const most = nonNegative(operand, 'maxLength');
    return (value) => typeof value !== 'string' || [...value].length <= most;
  },
  pattern(operand) {
    if (typeof operand !== 'string') throw typeMismatch("$jsonSchema keyword 'pattern' must be a string");
    const pattern = compilePattern(operand, '');
    return (value) => typeof value !== 'string' || pattern.test(value);
  },
  items(operand, _schema, compile) {
    if (Array.isArray(operand)) {
      const checks = operand.map(compile);
      return (value) => !Array.isArray(value) || checks.every((check, i) => i >= value.length || check(value[i]));
    }
    const check = compile(operand);
    return (value) => !Array.isArray(value) || value.every(check);
  },
  additionalItems(operand, schema, compile) {
    if (!Array.isArray(schema['items'])) return null;
    const count = schema['items'].length;
    const check = typeof operand === 'boolean' ? () => operand : compile(operand);
    return (value) => !Array.isArray(value) || value.slice(count).every(check);
  },
  minItems(operand) {
    const least = nonNegative(operand, 'minItems');
    return (value) => !Array.isArray(value) || value.length >= least;
  },
  maxItems(operand) {
    const most = nonNegative(operand, 'maxItems');
    return (value) => !Array.isArray(value) || value.length <= most;
  },
  uniqueItems(operand) {
    if (operand !== true) return null;
    return (value) =>
      !Array.isArray(value) ||
      (value.length < 50
        ? value.every((item, i) => !value.slice(0, i).some((other) => equalValues(other, item)))
        : new Set(value.map(keyOf)).size === value.length);
  },
  allOf(operand, _schema, compile) {
    const checks = list(operand, 'allOf').map(compile);
    return (value) => checks.every((check) => check(value));
  },
  anyOf(operand, _schema, compile) {
    const checks = list(operand, 'anyOf').map(compile);
    return (value) => checks.some((check) => check(value));
  },
  oneOf(operand, _schema, compile) {
    const checks = list(operand, 'oneOf').map(compile);
    return (value) => checks.filter((check) => check(value)).length === 1;
  },
  not(operand, _schema, compile) {
    const check = compile(operand);
    return (value) => !check(value);
  },
};
