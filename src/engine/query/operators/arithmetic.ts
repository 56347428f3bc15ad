import type { EngineError } from '../../errors.js';
import { badValue, refusal, typeMismatch } from '../../errors.js';
import {
  closeDecimal,
  decimalOf,
  decimalToNumber,
  divideDecimals,
  isZero,
  openDecimal,
  remainderDecimals,
  roundDecimal,
} from '../values/decimal.js';
import {
  addNumbers,
  kindOf,
  multiplyNumbers,
  narrow,
  overflowToDouble,
  subtractNumbers,
  toDecimal,
} from '../values/number.js';
import { integerOf, isDecimal, isNullish, isNumber, numberOf, toDouble, typeOf } from '../values/value.js';
import { binary, type ExpressionOperator, type OperatorTable, unary, variadic } from './operator.js';
import { dateAt } from './time-zone.js';

function requireNumber(value: unknown, name: string, code: number): void {
  if (!isNumber(value)) throw refusal(code, `${name} only supports numeric types, not ${typeOf(value)}`);
}

/** One numeric argument; null and missing give null. */
function numeric(name: string, apply: (value: unknown) => unknown, code = 28765): ExpressionOperator {
  return unary((value) => {
    if (isNullish(value)) return null;
    requireNumber(value, name, code);
    return apply(value);
  });
}

/** Through doubles; a decimal operand gives a decimal. */
function viaDouble(name: string, apply: (value: number) => number, check?: (value: number) => boolean, code = 28765) {
  return numeric(name, (value) => {
    const number = numberOf(value)!;
    if (check !== undefined && !Number.isNaN(number) && !check(number)) {
      throw refusal(code, `${name}'s argument is out of range, but is ${String(number)}`);
    }
    const result = apply(number);
    return isDecimal(value) ? closeDecimal(decimalOf(result, 15)) : toDouble(result);
  });
}

function add(values: readonly unknown[]): unknown {
  let sum: unknown = 0;
  let date: Date | undefined;
  for (const value of values) {
    if (isNullish(value)) return null;
    if (value instanceof Date) {
      if (date !== undefined) throw refusal(16612, 'only one date allowed in an $add expression');
      date = value;
    } else if (isNumber(value)) {
      sum = addNumbers(sum, value);
    } else {
      throw typeRefusal('$add only supports numeric or date types', value);
    }
  }
  return date === undefined ? sum : shiftDate(date, sum);
}

function typeRefusal(message: string, value: unknown): EngineError {
  return typeMismatch(`${message}, not ${typeOf(value)}`);
}

function shiftDate(date: Date, amount: unknown): Date {
  return dateAt(date.getTime() + Math.round(numberOf(amount)!));
}

function subtract(a: unknown, b: unknown): unknown {
  if (isNullish(a) || isNullish(b)) return null;
  if (a instanceof Date) {
    if (b instanceof Date) return BigInt(a.getTime() - b.getTime());
    if (isNumber(b)) return shiftDate(a, subtractNumbers(0, b));
  } else if (isNumber(a) && isNumber(b)) {
    return subtractNumbers(a, b);
  }
  throw typeMismatch(`can't $subtract ${typeOf(b)} from ${typeOf(a)}`);
}

function multiply(values: readonly unknown[]): unknown {
  let product: unknown = 1;
  for (const value of values) {
    if (isNullish(value)) return null;
    if (!isNumber(value)) throw typeRefusal('$multiply only supports numeric types', value);
    product = multiplyNumbers(product, value);
  }
  return product;
}

function divide(a: unknown, b: unknown): unknown {
  if (isNullish(a) || isNullish(b)) return null;
  if (!isNumber(a) || !isNumber(b)) {
    throw typeMismatch(`$divide only supports numeric types, not ${typeOf(a)} and ${typeOf(b)}`);
  }
  if (isDecimal(a) || isDecimal(b)) {
    const divisor = toDecimal(b);
    if (isZero(divisor)) throw badValue("can't $divide by zero");
    return closeDecimal(divideDecimals(toDecimal(a), divisor));
  }
  const divisor = numberOf(b)!;
  if (divisor === 0) throw badValue("can't $divide by zero");
  return toDouble(numberOf(a)! / divisor);
}

function modulo(a: unknown, b: unknown): unknown {
  if (isNullish(a) || isNullish(b)) return null;
  if (!isNumber(a) || !isNumber(b)) {
    throw refusal(16611, `$mod only supports numeric types, not ${typeOf(a)} and ${typeOf(b)}`);
  }
  if (isDecimal(a) || isDecimal(b)) {
    const divisor = toDecimal(b);
    if (isZero(divisor)) throw refusal(16610, "can't $mod by zero");
    return closeDecimal(remainderDecimals(toDecimal(a), divisor));
  }
  if (numberOf(b) === 0) throw refusal(16610, "can't $mod by zero");
  const kinds = [kindOf(a), kindOf(b)];
  if (kinds.includes('double')) return toDouble(numberOf(a)! % numberOf(b)!);
  return narrow(BigInt(a as bigint | number) % BigInt(b as bigint | number), kinds.includes('long'), overflowToDouble);
}

function absolute(value: unknown): unknown {
  if (isDecimal(value)) return closeDecimal({ ...openDecimal(value), negative: false });
  if (typeof value === 'bigint') {
    if (value === -(2n ** 63n)) throw refusal(28680, "can't take $abs of long long min");
    return value < 0n ? -value : value;
  }
  const result = Math.abs(numberOf(value)!);
  if (kindOf(value) === 'double') return toDouble(result);
  return result > 2147483647 ? BigInt(result) : result;
}

function rounded(name: string, mode: 'floor' | 'ceil', apply: (value: number) => number): ExpressionOperator {
  return numeric(name, (value) => {
    if (isDecimal(value)) return closeDecimal(roundDecimal(openDecimal(value), 0, mode));
    return kindOf(value) === 'double' ? toDouble(apply(numberOf(value)!)) : value;
  });
}

function toPlace(name: '$round' | '$trunc'): ExpressionOperator {
  const mode = name === '$round' ? 'round' : 'trunc';
  return variadic(
    ([value, digits]) => {
      if (isNullish(value) || digits === null) return null;
      requireNumber(value, name, 51081);
      const place = digits === undefined ? 0 : integerOf(digits);
      if (place === null) throw refusal(51082, `precision argument to ${name} must be a integral value`);
      if (place < -20 || place > 100) {
        throw refusal(51083, `cannot apply ${name} with precision value ${String(place)}, must be in [-20, 100]`);
      }
      if (isDecimal(value)) return closeDecimal(roundDecimal(openDecimal(value), place, mode));
      if (kindOf(value) === 'double') return roundDouble(numberOf(value)!, place, mode);
      if (place >= 0) return value;
      const exact = roundDecimal(decimalOf(BigInt(value as bigint | number)), place, mode);
      const whole = exact.coefficient * 10n ** BigInt(exact.exponent) * (exact.negative ? -1n : 1n);
      return narrow(whole, typeof value === 'bigint', () => {
        throw refusal(51080, `invalid conversion from Decimal128 result in ${name}`);
      });
    },
    1,
    2,
  );
}

function roundDouble(value: number, place: number, mode: 'round' | 'trunc'): unknown {
  if (!Number.isFinite(value)) return value;
  if (place === 0) {
    if (mode === 'trunc') return toDouble(Math.trunc(value));
    const floor = Math.floor(value);
    const rest = value - floor;
    const up = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0);
    const result = up ? floor + 1 : floor;
    return toDouble(result === 0 && (value < 0 || Object.is(value, -0)) ? -0 : result);
  }
  return toDouble(decimalToNumber(roundDecimal(decimalOf(value), place, mode)));
}

function power(base: unknown, exponent: unknown): unknown {
  if (isNullish(base) || isNullish(exponent)) return null;
  requireNumber(base, '$pow', 28762);
  requireNumber(exponent, '$pow', 28763);
  const [x, y] = [numberOf(base)!, numberOf(exponent)!];
  if (x === 0 && y < 0) throw refusal(28764, '$pow cannot take a base of 0 and a negative exponent');
  const result = Math.pow(x, y);
  if (isDecimal(base) || isDecimal(exponent)) return powerOfDecimals(base, exponent, result);
  const kinds = [kindOf(base), kindOf(exponent)];
  if (kinds.includes('double') || y < 0) return toDouble(result);
  if (Math.abs(result) < 2 ** 63) {
    return narrow(
      BigInt(base as bigint | number) ** BigInt(exponent as bigint | number),
      kinds.includes('long'),
      overflowToDouble,
    );
  }
  return toDouble(result);
}

/** Exact for small whole exponents, otherwise with the precision of a double. */
function powerOfDecimals(base: unknown, exponent: unknown, approximate: number): unknown {
  const whole = integerOf(exponent);
  if (whole === null || whole < 0 || whole > 200) return closeDecimal(decimalOf(approximate, 15));
  let product: unknown = closeDecimal(decimalOf(1));
  for (let i = 0; i < whole; i++) product = multiplyNumbers(product, base);
  return product;
}

function bitwise(name: string, start: number, apply: (a: bigint, b: bigint) => bigint): ExpressionOperator {
  return variadic((values) => {
    if (values.some(isNullish)) return null;
    let result = BigInt(start);
    let wide = false;
    for (const value of values) {
      const kind = kindOf(value);
      if (kind !== 'int' && kind !== 'long') {
        throw typeMismatch(`${name} only supports int and long operands, not ${typeOf(value)}`);
      }
      wide ||= kind === 'long';
      result = apply(result, BigInt(value as bigint | number));
    }
    return narrow(result, wide, overflowToDouble);
  });
}

const log10: ExpressionOperator = viaDouble('$log10', Math.log10, (value) => value > 0, 28761);

/** Numbers: arithmetic, rounding, powers, trigonometry and bits. */
export const arithmeticOperators: OperatorTable = {
  $add: variadic(add),
  $subtract: binary(subtract),
  $multiply: variadic(multiply),
  $divide: binary(divide),
  $mod: binary(modulo),
  $abs: numeric('$abs', absolute),
  $ceil: rounded('$ceil', 'ceil', Math.ceil),
  $floor: rounded('$floor', 'floor', Math.floor),
  $round: toPlace('$round'),
  $trunc: toPlace('$trunc'),
  $pow: binary(power),
  $sqrt: viaDouble('$sqrt', Math.sqrt, (value) => value >= 0, 28714),
  $exp: viaDouble('$exp', Math.exp),
  $ln: viaDouble('$ln', Math.log, (value) => value > 0, 28766),
  $log10: log10,
  $log: binary((value, base) => {
    if (isNullish(value) || isNullish(base)) return null;
    requireNumber(value, '$log', 28756);
    requireNumber(base, '$log', 28757);
    const [x, b] = [numberOf(value)!, numberOf(base)!];
    if (!(x > 0)) throw refusal(28758, "$log's argument must be a positive number");
    if (!(b > 0) || b === 1) throw refusal(28759, "$log's base must be a positive number not equal to 1");
    return toDouble(Math.log(x) / Math.log(b));
  }),
  $sin: viaDouble('$sin', Math.sin, Number.isFinite, 50989),
  $cos: viaDouble('$cos', Math.cos, Number.isFinite, 50989),
  $tan: viaDouble('$tan', Math.tan, Number.isFinite, 50989),
  $asin: viaDouble('$asin', Math.asin, (value) => Math.abs(value) <= 1, 50989),
  $acos: viaDouble('$acos', Math.acos, (value) => Math.abs(value) <= 1, 50989),
  $atan: viaDouble('$atan', Math.atan),
  $atan2: binary((y, x) => {
    if (isNullish(y) || isNullish(x)) return null;
    requireNumber(y, '$atan2', 51044);
    requireNumber(x, '$atan2', 51045);
    return toDouble(Math.atan2(numberOf(y)!, numberOf(x)!));
  }),
  $sinh: viaDouble('$sinh', Math.sinh),
  $cosh: viaDouble('$cosh', Math.cosh),
  $tanh: viaDouble('$tanh', Math.tanh),
  $asinh: viaDouble('$asinh', Math.asinh),
  $acosh: viaDouble('$acosh', Math.acosh, (value) => value >= 1, 50989),
  $atanh: viaDouble('$atanh', Math.atanh, (value) => Math.abs(value) <= 1, 50989),
  $degreesToRadians: viaDouble('$degreesToRadians', (value) => (value * Math.PI) / 180),
  $radiansToDegrees: viaDouble('$radiansToDegrees', (value) => (value * 180) / Math.PI),
  $bitAnd: bitwise('$bitAnd', -1, (a, b) => a & b),
  $bitOr: bitwise('$bitOr', 0, (a, b) => a | b),
  $bitXor: bitwise('$bitXor', 0, (a, b) => a ^ b),
  $bitNot: unary((value) => {
    if (isNullish(value)) return null;
    const kind = kindOf(value);
    if (kind !== 'int' && kind !== 'long') {
      throw typeMismatch(`$bitNot only supports int and long, not ${typeOf(value)}`);
    }
    return kind === 'int' ? ~(value as number) : ~(value as bigint);
  }),
  $rand: (_operand, _compiler) => ({ evaluate: () => toDouble(Math.random()), constant: false }),
};
