import type { ObjectId, Timestamp } from 'bson';
import { type Doc, isDocument } from '../../codec/document.js';
import { CODES, EngineError, refusal } from '../../errors.js';
import { integerOf, isNullish, isNumber, numberOf, typeOf } from '../values/value.js';
import { shown } from './convert.js';
import { addToDate, dateDifference, requireUnit, truncateDate } from './date-arithmetic.js';
import { dayOfYear, formatDate, isoTime, isoWeekOf, parseDateBy, parseIsoDate, weekOf } from './date-text.js';
import { type ExpressionOperator, fold, named, namedOperand, type OperatorTable, unary } from './operator.js';
import { dateAt, fromWallClock, requireTimeZone, type TimeZone, toWallClock, UTC, utcTime } from './time-zone.js';

/** The instant of a date, timestamp or ObjectId. */
function timeOf(value: unknown): number {
  switch (typeOf(value)) {
    case 'date':
      return (value as Date).getTime();
    case 'timestamp':
      return (value as Timestamp).t * 1000;
    case 'objectId':
      return (value as ObjectId).getTimestamp().getTime();
    default:
      throw refusal(16006, `can't convert from BSON type ${typeOf(value)} to Date`);
  }
}

/** One field of a date: the operand is the date itself or `{date, timezone}`. */
function part(read: (local: Date) => number | bigint): ExpressionOperator {
  return (operand, compiler, name) => {
    const list: unknown = Array.isArray(operand) && operand.length === 1 ? operand[0] : operand;
    if (Array.isArray(list)) throw refusal(40536, `${name} accepts exactly one argument if given an array`);
    const isNamed = isDocument(list) && !Object.keys(list).some((key) => key.startsWith('$'));
    const fields: Doc = isNamed ? namedOperand(list, name, ['date'], ['timezone']) : { date: list };
    const date = compiler.compile(fields['date']);
    const zone = Object.hasOwn(fields, 'timezone') ? compiler.compile(fields['timezone']) : undefined;
    return fold(
      (current, scope) => {
        const value = date.evaluate(current, scope);
        if (isNullish(value)) return null;
        if (zone === undefined) return read(dateAt(timeOf(value)));
        const zoneName = zone.evaluate(current, scope);
        if (isNullish(zoneName)) return null;
        return read(toWallClock(timeOf(value), requireTimeZone(zoneName)));
      },
      [date, zone],
    );
  };
}

/** Null when the zone is given but null or missing, which makes every date operator answer null. */
function zoneOf(value: unknown, given: boolean): TimeZone | null {
  if (!given) return UTC;
  return isNullish(value) ? null : requireTimeZone(value);
}

const toText: ExpressionOperator = named(
  ['date'],
  ['format', 'timezone', 'onNull'],
  ({ date, format, timezone, onNull }, given) => {
    const zone = zoneOf(timezone, given.has('timezone'));
    if (isNullish(date)) return given.has('onNull') ? onNull : null;
    if (zone === null || (given.has('format') && isNullish(format))) return null;
    if (format !== undefined && typeof format !== 'string') {
      throw refusal(18533, "$dateToString requires that 'format' be a string");
    }
    const fallback = zone.isUtc ? '%Y-%m-%dT%H:%M:%S.%LZ' : '%Y-%m-%dT%H:%M:%S.%L';
    return formatDate(timeOf(date), format ?? fallback, zone);
  },
);

const fromText: ExpressionOperator = (operand, compiler, name) => {
  const fields = namedOperand(operand, name, ['dateString'], ['format', 'timezone', 'onError', 'onNull']);
  const compiled = new Map(Object.keys(fields).map((key) => [key, compiler.compile(fields[key])]));
  return fold(
    (current, scope) => {
      const read = (key: string) => compiled.get(key)?.evaluate(current, scope);
      const text = read('dateString');
      if (isNullish(text)) return read('onNull') ?? null;
      const zone = compiled.has('timezone') ? read('timezone') : 'UTC';
      const format = read('format');
      if (isNullish(zone) || (compiled.has('format') && isNullish(format))) return null;
      requireTimeZone(zone);
      if (!isNullish(format) && typeof format !== 'string') {
        throw refusal(40684, "$dateFromString requires that 'format' be a string");
      }
      const date =
        typeof text !== 'string'
          ? null
          : isNullish(format)
            ? parseIsoDate(text, zone as string)
            : parseDateBy(text, format, zone as string);
      if (date !== null) return date;
      if (compiled.has('onError')) return read('onError');
      throw refusal(
        CODES.ConversionFailure,
        `$dateFromString: an error occurred while parsing '${typeof text === 'string' ? shown(text) : typeOf(text)}'`,
      );
    },
    [...compiled.values()],
  );
};

const PART_NAMES = ['year', 'month', 'day', 'hour', 'minute', 'second', 'millisecond'];
const ISO_PART_NAMES = ['isoWeekYear', 'isoWeek', 'isoDayOfWeek', 'hour', 'minute', 'second', 'millisecond'];

const fromParts: ExpressionOperator = (operand, compiler, name) => {
  const iso = isDocument(operand) && Object.hasOwn(operand, 'isoWeekYear');
  const names = iso ? ISO_PART_NAMES : PART_NAMES;
  const compile = named([names[0]!], [...names.slice(1), 'timezone'], (values, given) => {
    const zone = zoneOf(values['timezone'], given.has('timezone'));
    const numbers: number[] = [];
    for (const [i, key] of names.entries()) {
      if (!given.has(key)) {
        numbers.push(i < 3 ? 1 : 0);
        continue;
      }
      if (isNullish(values[key])) return null;
      const number = integerOf(values[key]);
      if (number === null) throw refusal(40515, `'${key}' must evaluate to an integer, found ${typeOf(values[key])}`);
      if (i === 0 && (number < 1 || number > 9999)) {
        throw refusal(40523, `'${key}' must evaluate to an integer in the range 1 to 9999, found ${String(number)}`);
      }
      numbers.push(number);
    }
    if (zone === null) return null;
    const [year, second, third, hour, minute, seconds, millisecond] = numbers as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    const day = iso ? isoTime(year, second, third) : utcTime(year, second - 1, third);
    const local = day + ((hour * 60 + minute) * 60 + seconds) * 1000 + millisecond;
    return dateAt(fromWallClock(local, zone));
  });
  return compile(operand, compiler, name);
};

const toParts: ExpressionOperator = named(['date'], ['timezone', 'iso8601'], ({ date, timezone, iso8601 }, given) => {
  const zone = zoneOf(timezone, given.has('timezone'));
  if (isNullish(date) || zone === null || (given.has('iso8601') && isNullish(iso8601))) return null;
  if (given.has('iso8601') && typeof iso8601 !== 'boolean') throw refusal(40521, 'iso8601 must evaluate to a bool');
  const local = toWallClock(timeOf(date), zone);
  const clock = {
    hour: local.getUTCHours(),
    minute: local.getUTCMinutes(),
    second: local.getUTCSeconds(),
    millisecond: local.getUTCMilliseconds(),
  };
  if (iso8601 === true) {
    const { year, week, day } = isoWeekOf(local);
    return { isoWeekYear: year, isoWeek: week, isoDayOfWeek: day, ...clock };
  }
  return { year: local.getUTCFullYear(), month: local.getUTCMonth() + 1, day: local.getUTCDate(), ...clock };
});

function shift(direction: 1 | -1): ExpressionOperator {
  return named(['startDate', 'unit', 'amount'], ['timezone'], ({ startDate, unit, amount, timezone }, given) => {
    const zone = zoneOf(timezone, given.has('timezone'));
    if (isNullish(startDate) || isNullish(unit) || isNullish(amount) || zone === null) return null;
    const count = isNumber(amount) ? integerOf(amount) : null;
    if (count === null) throw refusal(5166405, 'the amount must be an integral number of units');
    return dateAt(addToDate(timeOf(startDate), requireUnit(unit), count * direction, zone));
  });
}

/** Dates: their fields, text, arithmetic and time zones. */
export const dateOperators: OperatorTable = {
  $year: part((local) => local.getUTCFullYear()),
  $month: part((local) => local.getUTCMonth() + 1),
  $dayOfMonth: part((local) => local.getUTCDate()),
  $dayOfWeek: part((local) => local.getUTCDay() + 1),
  $dayOfYear: part(dayOfYear),
  $hour: part((local) => local.getUTCHours()),
  $minute: part((local) => local.getUTCMinutes()),
  $second: part((local) => local.getUTCSeconds()),
  $millisecond: part((local) => local.getUTCMilliseconds()),
  $week: part(weekOf),
  $isoWeek: part((local) => isoWeekOf(local).week),
  $isoWeekYear: part((local) => BigInt(isoWeekOf(local).year)),
  $isoDayOfWeek: part((local) => isoWeekOf(local).day),
  $dateToString: toText,
  $dateFromString: fromText,
  $dateToParts: toParts,
  $dateFromParts: fromParts,
  $dateAdd: shift(1),
  $dateSubtract: shift(-1),
  $dateDiff: named(['startDate', 'endDate', 'unit'], ['timezone', 'startOfWeek'], (values, given) => {
    const zone = zoneOf(values['timezone'], given.has('timezone'));
    const { startDate, endDate, unit, startOfWeek } = values;
    if (isNullish(startDate) || isNullish(endDate) || isNullish(unit) || zone === null) return null;
    return BigInt(dateDifference(timeOf(startDate), timeOf(endDate), requireUnit(unit), zone, startOfWeek));
  }),
  $dateTrunc: named(['date', 'unit'], ['binSize', 'timezone', 'startOfWeek'], (values, given) => {
    const zone = zoneOf(values['timezone'], given.has('timezone'));
    const { date, unit, binSize, startOfWeek } = values;
    if (isNullish(date) || isNullish(unit) || zone === null) return null;
    if (given.has('binSize') && isNullish(binSize)) return null;
    const size = binSize === undefined ? 1 : isNumber(binSize) ? numberOf(binSize)! : NaN;
    if (!Number.isSafeInteger(size) || size < 1) throw new EngineError(5439017, 'binSize must be a positive integer');
    return dateAt(truncateDate(timeOf(date), requireUnit(unit), size, zone, startOfWeek));
  }),
  $tsSecond: unary((value) => {
    if (isNullish(value)) return null;
    if (typeOf(value) !== 'timestamp') throw refusal(5687301, `$tsSecond requires a timestamp, found ${typeOf(value)}`);
    return BigInt((value as Timestamp).t);
  }),
  $tsIncrement: unary((value) => {
    if (isNullish(value)) return null;
    if (typeOf(value) !== 'timestamp') {
      throw refusal(5687302, `$tsIncrement requires a timestamp, found ${typeOf(value)}`);
    }
    return BigInt((value as Timestamp).i);
  }),
};
