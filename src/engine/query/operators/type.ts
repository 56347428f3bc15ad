import { isDocument } from '../../codec/document.js';
import { EngineError } from '../../errors.js';
import { isNullish, isNumber, type TypeName, typeOf } from '../values/value.js';
import { convertTo, parseTargetType } from './convert.js';
import { type ExpressionOperator, fold, namedOperand, type OperatorTable, unary } from './operator.js';

function conversion(target: TypeName): ExpressionOperator {
  return unary((value) => (isNullish(value) ? null : convertTo(value, target)));
}

const convert: ExpressionOperator = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['input', 'to'], ['onError', 'onNull', 'format', 'byteOrder']);
  const input = compiler.compile(fields['input']);
  const target = compiler.compile(fields['to']);
  const onError = Object.hasOwn(fields, 'onError') ? compiler.compile(fields['onError']) : undefined;
  const onNull = Object.hasOwn(fields, 'onNull') ? compiler.compile(fields['onNull']) : undefined;
  return fold(
    (current, scope) => {
      const value = input.evaluate(current, scope);
      const to = target.evaluate(current, scope);
      if (isNullish(value)) return onNull === undefined ? null : onNull.evaluate(current, scope);
      if (isNullish(to)) return null;
      const type = parseTargetType(isDocument(to) ? to['type'] : to);
      try {
        return convertTo(value, type);
      } catch (error) {
        if (onError === undefined || !(error instanceof EngineError)) throw error;
        return onError.evaluate(current, scope);
      }
    },
    [input, target, onError, onNull],
  );
};

/** Types and conversions. */
export const typeOperators: OperatorTable = {
  $type: unary((value) => typeOf(value)),
  $isNumber: unary((value) => isNumber(value)),
  $convert: convert,
  $toBool: conversion('bool'),
  $toInt: conversion('int'),
  $toLong: conversion('long'),
  $toDouble: conversion('double'),
  $toDecimal: conversion('decimal'),
  $toString: conversion('string'),
  $toDate: conversion('date'),
  $toObjectId: conversion('objectId'),
};
