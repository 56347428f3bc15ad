import { type Doc, isDocument } from '../codec/document.js';
import { badValue, CODES, EngineError, failedToParse, refusal, typeMismatch } from '../errors.js';
import type { Collation } from '../query/collation/collation.js';
import { numberOf } from '../query/values/value.js';
import { readCollation } from './collation-spec.js';

/** One option of a command: what it is when left out or null, and how a given value is read. */
export interface Option<T> {
  readonly fallback: T;
  /** Refused with 40414 when it is left out. */
  readonly required?: true;
  /** Throws an EngineError with MongoDB's code; `of` and `name` are for its text. */
  readonly read: (value: unknown, name: string, of: string) => T;
}

/** The table of a command's options: the names that it knows, each with its type, default and check. */
export type OptionTable<T> = { readonly [Name in keyof T]: Option<T[Name]> };

/** The values that a table's options have once they are read. */
export type ValuesOf<Table> = { [Name in keyof Table]: Table[Name] extends Option<infer T> ? T : never };

/**
 * A reader of bodies by the table: options that are left out or null have their default. Refuses unknown ones (40415),
 * so that none is silently ignored. `of` is the command's name, or that of its list of statements; fields that `passes`
 * are looked at elsewhere, or nowhere.
 */
export function optionReader<T extends object>(
  table: OptionTable<T>,
  passes: (name: string, of: string) => boolean = () => false,
): (body: Doc, of: string) => T {
  const options = new Map(Object.entries<Option<unknown>>(table));
  const defaults = Object.fromEntries(
    [...options].map(([name, { fallback, required }]) => [name, required === true ? undefined : fallback]),
  );
  const required = [...options.keys()].filter((name) => options.get(name)!.required === true);
  return (body, of) => {
    const values = { ...defaults };
    for (const name in body) {
      const option = options.get(name);
      if (option !== undefined) {
        const value = body[name];
        if (value !== undefined && value !== null) values[name] = option.read(value, name, of);
      } else if (!passes(name, of)) {
        throw unknownField(of, name);
      }
    }
    for (const name of required) {
      if (values[name] === undefined) {
        throw new EngineError(CODES.IDLFailedToParse, `BSON field '${of}.${name}' is missing but a required field`);
      }
    }
    return values as T;
  };
}

function unknownField(of: string, name: string): EngineError {
  return new EngineError(CODES.IDLUnknownField, `BSON field '${of}.${name}' is an unknown field.`);
}

function wrongType(of: string, name: string, wanted: string): EngineError {
  return typeMismatch(`BSON field '${of}.${name}' is the wrong type, expected ${wanted}`);
}

/** Any value, undefined when left out: the command checks it. */
export const anything: Option<unknown> = { fallback: undefined, read: (value) => value };

/** A value that changes nothing here, whatever it is. */
export const ignored: Option<undefined> = { fallback: undefined, read: () => undefined };

/** A document, undefined when left out. */
export const givenDocument: Option<Doc | undefined> = {
  fallback: undefined,
  read(value, name, of) {
    if (!isDocument(value)) throw wrongType(of, name, "type 'object'");
    return value;
  },
};

/** A document, `{}` when left out. */
export const documentOption: Option<Doc> = {
  fallback: {},
  read: (value, name, of) => givenDocument.read(value, name, of)!,
};

/** A list of anything, undefined when left out. */
export const listOption: Option<readonly unknown[] | undefined> = {
  fallback: undefined,
  read(value, name, of) {
    if (!Array.isArray(value)) throw wrongType(of, name, "type 'array'");
    return value as unknown[];
  },
};

/** A text that must be given. */
export const textOption: Option<string> = {
  fallback: '',
  required: true,
  read(value, name, of) {
    if (typeof value !== 'string') throw wrongType(of, name, "type 'string'");
    return value;
  },
};

/** True or false; numbers count as MongoDB counts them. */
export function flagOption(fallback: boolean): Option<boolean> {
  return {
    fallback,
    read(value, name, of) {
      if (typeof value === 'boolean') return value;
      const number = numberOf(value);
      if (number === null) throw wrongType(of, name, "type 'bool'");
      return number !== 0;
    },
  };
}

/** An integral number that is not negative. */
export function countOption<T extends number | undefined>(fallback: T): Option<number | T> {
  return {
    fallback,
    read(value, name, of) {
      const number = numberOf(value);
      if (number === null) throw wrongType(of, name, 'a number');
      if (!Number.isInteger(number)) throw failedToParse(`BSON field '${of}.${name}' must be an integral number`);
      if (number < 0) throw refusal(51024, `BSON field '${of}.${name}' value must be >= 0, actual value '${number}'`);
      return number;
    },
  };
}

const readCursor = optionReader({ batchSize: countOption(undefined) });

/** The option `cursor`: its batch size, undefined when there is none. */
export const cursorOption: Option<{ readonly batchSize: number | undefined } | undefined> = {
  fallback: undefined,
  read: (value, name, of) => readCursor(documentOption.read(value, name, of), `${of}.${name}`),
};

/** Of a command that was sent without one. */
export const NO_CURSOR: { readonly batchSize?: number } = {};

/** How text is compared; null: by its code points. */
export const collationOption: Option<Collation | null> = {
  fallback: null,
  read: (value, name, of) => readCollation(documentOption.read(value, name, of), `${of}.${name}`),
};

/** A flag that may only be off: what it asks for is not there. */
export function refusedFlag(why: string): Option<false> {
  const { read } = flagOption(false);
  return {
    fallback: false,
    read(value, name, of) {
      if (read(value, name, of)) throw badValue(why);
      return false;
    },
  };
}
