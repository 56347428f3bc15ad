import { isDocument } from '../../codec/document.js';
import { refusal } from '../../errors.js';
import { compareValues, equalValues } from '../values/compare.js';
import { isNullish, isTruthy } from '../values/value.js';
import {
  binary,
  type Compiled,
  compileArguments,
  type ExpressionOperator,
  fold,
  namedOperand,
  type OperatorTable,
  unary,
} from './operator.js';

/** Evaluates arguments only until the answer is known. */
function shortCircuit(decisive: boolean): ExpressionOperator {
  return (operand, compiler, name) => {
    const parts = compileArguments(operand, compiler, name, 0, Infinity);
    const evaluates = parts.map((part) => part.evaluate);
    return fold((current, scope) => {
      for (const evaluate of evaluates) if (isTruthy(evaluate(current, scope)) === decisive) return decisive;
      return !decisive;
    }, parts);
  };
}

const condition: ExpressionOperator = (operand, compiler, name) => {
  let parts: Compiled[];
  if (isDocument(operand)) {
    for (const key of Object.keys(operand)) {
      if (!['if', 'then', 'else'].includes(key)) throw refusal(17083, `Unrecognized parameter to $cond: ${key}`);
    }
    parts = ['if', 'then', 'else'].map((key, i) => {
      if (!Object.hasOwn(operand, key)) throw refusal(17080 + i, `Missing '${key}' parameter to $cond`);
      return compiler.compile(operand[key]);
    });
  } else {
    parts = compileArguments(operand, compiler, name, 3, 3);
  }
  const [test, then, otherwise] = parts.map((part) => part.evaluate) as [
    Compiled['evaluate'],
    Compiled['evaluate'],
    Compiled['evaluate'],
  ];
  return fold((current, scope) => (isTruthy(test(current, scope)) ? then : otherwise)(current, scope), parts);
};

const choose: ExpressionOperator = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['branches'], ['default']);
  if (!Array.isArray(fields['branches'])) throw refusal(40061, "$switch expected an array for 'branches'");
  const branches = fields['branches'].map((branch: unknown) => {
    if (!isDocument(branch)) throw refusal(40062, '$switch expected each branch to be an object');
    for (const key of Object.keys(branch)) {
      if (key !== 'case' && key !== 'then') {
        throw refusal(40063, `$switch found an unknown argument to a branch: ${key}`);
      }
    }
    if (!Object.hasOwn(branch, 'case')) throw refusal(40064, "$switch requires each branch have a 'case' expression");
    if (!Object.hasOwn(branch, 'then')) throw refusal(40065, "$switch requires each branch have a 'then' expression.");
    return { test: compiler.compile(branch['case']), then: compiler.compile(branch['then']) };
  });
  if (branches.length === 0 && !Object.hasOwn(fields, 'default')) {
    throw refusal(40068, '$switch requires at least one branch.');
  }
  const otherwise = Object.hasOwn(fields, 'default') ? compiler.compile(fields['default']) : undefined;
  return fold(
    (current, scope) => {
      for (const branch of branches) {
        if (isTruthy(branch.test.evaluate(current, scope))) return branch.then.evaluate(current, scope);
      }
      if (otherwise !== undefined) return otherwise.evaluate(current, scope);
      throw refusal(40066, '$switch could not find a matching branch for an input, and no default was specified.');
    },
    [...branches.flatMap((branch) => [branch.test, branch.then]), otherwise],
  );
};

const ifNull: ExpressionOperator = (operand, compiler, name) => {
  if (!Array.isArray(operand) || operand.length < 2) {
    throw refusal(1257300, '$ifNull needs at least two arguments');
  }
  const parts = compileArguments(operand, compiler, name, 2, Infinity);
  const evaluates = parts.map((part) => part.evaluate);
  return fold((current, scope) => {
    let value: unknown;
    for (const evaluate of evaluates) {
      value = evaluate(current, scope);
      if (!isNullish(value)) return value;
    }
    return value;
  }, parts);
};

/** Comparison, logic and choice. */
export const conditionOperators: OperatorTable = {
  $eq: binary((a, b) => equalValues(a, b)),
  $ne: binary((a, b) => !equalValues(a, b)),
  $gt: binary((a, b) => compareValues(a, b) > 0),
  $gte: binary((a, b) => compareValues(a, b) >= 0),
  $lt: binary((a, b) => compareValues(a, b) < 0),
  $lte: binary((a, b) => compareValues(a, b) <= 0),
  $cmp: binary((a, b) => compareValues(a, b)),
  $and: shortCircuit(false),
  $or: shortCircuit(true),
  $not: unary((value) => !isTruthy(value)),
  $cond: condition,
  $switch: choose,
  $ifNull: ifNull,
};
