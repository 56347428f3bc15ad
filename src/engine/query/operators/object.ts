import type { Binary } from 'bson';
import { calculateObjectSize } from '../../codec/bson.js';
import { type Doc, isDocument, setField } from '../../codec/document.js';
import { refusal } from '../../errors.js';
import { copyDoc, fieldOf, isNullish, typeOf } from '../values/value.js';
import { weigh } from '../values/weight.js';
import {
  type Compiled,
  type Compiler,
  type ExpressionOperator,
  fold,
  namedOperand,
  NO_SCOPE,
  type OperatorTable,
  unary,
  variadic,
} from './operator.js';

/** Sets every field of a document; null and missing have none, anything else that is no document is refused. */
export function mergeInto(target: Doc, value: unknown): void {
  if (isNullish(value)) return;
  if (!isDocument(value)) {
    throw refusal(40400, `$mergeObjects requires object inputs, but input is of type ${typeOf(value)}`);
  }
  for (const name of Object.keys(value)) setField(target, name, value[name]);
}

/** The field name of `$getField` and its relatives: a constant, in which `$` has no meaning. */
function fieldName(expression: unknown, compiler: Compiler, name: string): string {
  const compiled = compiler.compile(expression);
  const value = compiled.constant ? compiled.evaluate({}, NO_SCOPE) : undefined;
  if (typeof value !== 'string') throw refusal(5654602, `${name} requires 'field' to evaluate to a constant string`);
  return value;
}

const getField: ExpressionOperator = (operand, compiler, name) => {
  const full = isDocument(operand) && (Object.hasOwn(operand, 'field') || Object.hasOwn(operand, 'input'));
  const fields = full ? namedOperand(operand, name, ['field'], ['input']) : { field: operand };
  const wanted = fieldName(fields['field'], compiler, name);
  const input = compiler.compile(Object.hasOwn(fields, 'input') ? fields['input'] : '$$CURRENT');
  return fold(
    (current, scope) => {
      const value = input.evaluate(current, scope);
      if (isDocument(value)) return fieldOf(value, wanted);
      return value === null ? null : undefined;
    },
    [input],
  );
};

function withField(input: Compiled, name: string, value: Compiled | null): Compiled {
  return fold(
    (current, scope) => {
      const doc = input.evaluate(current, scope);
      if (isNullish(doc)) return null;
      if (!isDocument(doc)) throw refusal(4161105, `$setField requires 'input' to evaluate to type Object`);
      const copy = copyDoc(doc);
      const next = value?.evaluate(current, scope);
      if (next === undefined) delete copy[name];
      else setField(copy, name, next);
      weigh(copy);
      return copy;
    },
    [input, value ?? undefined],
  );
}

const setFieldOperator: ExpressionOperator = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['field', 'input', 'value'], []);
  const wanted = fieldName(fields['field'], compiler, name);
  return withField(compiler.compile(fields['input']), wanted, compiler.compile(fields['value']));
};

const unsetField: ExpressionOperator = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['field', 'input'], []);
  return withField(compiler.compile(fields['input']), fieldName(fields['field'], compiler, name), null);
};

function pairName(value: unknown): string {
  if (typeof value !== 'string') {
    throw refusal(40394, `$arrayToObject requires keys to be of type string, found ${typeOf(value)}`);
  }
  if (value.includes('\0')) throw refusal(4940401, 'Key field cannot contain an embedded null byte');
  return value;
}

function arrayToObject(value: unknown): unknown {
  if (isNullish(value)) return null;
  if (!Array.isArray(value)) throw refusal(40386, `$arrayToObject requires an array input, found: ${typeOf(value)}`);
  const result: Doc = {};
  for (const item of value) {
    if (Array.isArray(item)) {
      if (item.length !== 2) throw refusal(40397, '$arrayToObject requires an array of size 2 arrays');
      setField(result, pairName(item[0]), item[1]);
    } else if (isDocument(item)) {
      if (Object.keys(item).length !== 2 || !Object.hasOwn(item, 'k') || !Object.hasOwn(item, 'v')) {
        throw refusal(40392, "$arrayToObject requires an object keys of 'k' and 'v'");
      }
      setField(result, pairName(item['k']), item['v']);
    } else {
      throw refusal(40398, `Unrecognised input type format for $arrayToObject: ${typeOf(item)}`);
    }
  }
  return result;
}

/** Documents as values. */
export const objectOperators: OperatorTable = {
  $mergeObjects: variadic((values) => {
    const merged: Doc = {};
    for (const value of values) mergeInto(merged, value);
    weigh(merged);
    return merged;
  }),
  $objectToArray: unary((value) => {
    if (isNullish(value)) return null;
    if (!isDocument(value)) throw refusal(40390, `$objectToArray requires a document input, found: ${typeOf(value)}`);
    return Object.keys(value).map((k) => ({ k, v: value[k] }));
  }),
  $arrayToObject: unary(arrayToObject),
  $getField: getField,
  $setField: setFieldOperator,
  $unsetField: unsetField,
  $bsonSize: unary((value) => {
    if (isNullish(value)) return null;
    if (!isDocument(value)) throw refusal(31393, `$bsonSize requires a document input, found: ${typeOf(value)}`);
    return calculateObjectSize(value);
  }),
  $binarySize: unary((value) => {
    if (isNullish(value)) return null;
    if (typeof value === 'string') return Buffer.byteLength(value);
    if (typeOf(value) === 'binData') return (value as Binary).value().length;
    throw refusal(51276, `$binarySize requires a string or BinData argument, found: ${typeOf(value)}`);
  }),
};
