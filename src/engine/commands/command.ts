import { bsonType, type Doc, isDocument } from '../codec/document.js';
import { badValue, CODES, EngineError, failedToParse, typeMismatch } from '../errors.js';
import type { Storage } from '../storage/storage.js';
import type { Cursors } from './read/cursors.js';

/** What all commands of one opened engine share. */
export interface Core {
  readonly storage: Storage;
  readonly cursors: Cursors;
  readonly startedAt: number;
  /** How often each command was asked for since the start, unknown ones together under `<UNKNOWN>`. */
  readonly commandCounts: Map<string, number>;
  /** Null where every command stays in this thread. */
  readonly readers: Readers | null;
}

/** Threads for reads that would keep this one busy. */
export interface Readers {
  /** Runs the command on one of them; refused as it would be here, and with 365 while too many wait. */
  run(call: Call, body: Doc): Promise<Doc>;
}

/** One call of a command. */
export interface Call {
  readonly core: Core;
  readonly db: string;
  /** Aborted when whoever asked is gone. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * One command of the engine. `fields` are the fields its body may have besides the command's own name and those that
 * every command accepts; any other is refused, so that no option is silently ignored.
 */
export interface Command {
  readonly fields: readonly string[];
  /** It only reads, so that it can begin anew in another thread when it throws TOO_LONG_HERE. */
  readonly leaves?: true;
  run(call: Call, body: Doc): Promise<Doc> | Doc;
}

/** Fields that drivers add to every command and that mean nothing on a single node without transactions. */
const COMMON_FIELDS = new Set([
  '$db',
  'lsid',
  'txnNumber',
  '$clusterTime',
  '$readPreference',
  'readConcern',
  'writeConcern',
  'comment',
  'maxTimeMS',
  'apiVersion',
  'apiStrict',
  'apiDeprecationErrors',
  'stmtId',
  'stmtIds',
]);

/**
 * Of a refused transaction. Its code is not MongoDB's 20: for that of a write drivers put words about retryable writes
 * in the place of these.
 */
export const NO_TRANSACTIONS =
  'Transactions are not available: this is a single node of the embedded engine, where every change of one document is atomic. Use a MongoDB replica set for more';

/** Refuses fields that the command does not know (40415), and everything that belongs to a transaction (263). */
export function refuseUnknownFields(name: string, command: Command, body: Doc): void {
  for (const field in body) {
    if (field === name || command.fields.includes(field) || COMMON_FIELDS.has(field)) continue;
    if (field === 'startTransaction' || field === 'autocommit') {
      throw new EngineError(CODES.OperationNotSupportedInTransaction, NO_TRANSACTIONS);
    }
    throw new EngineError(CODES.IDLUnknownField, `BSON field '${name}.${field}' is an unknown field.`);
  }
}

const MAX_DATABASE_NAME_LENGTH = 63;

/** Refuses names that MongoDB refuses (73): a dot would make one database's collections those of another. */
export function requireDatabaseName(name: string): void {
  if (name === '' || name.length > MAX_DATABASE_NAME_LENGTH || /[/\\. "$\0]/.test(name)) {
    throw new EngineError(
      CODES.InvalidNamespace,
      `Invalid database name: '${name.slice(0, MAX_DATABASE_NAME_LENGTH)}'`,
    );
  }
}

/** The full name of the collection that the command's first field names; 73 for names that no collection may have. */
export function requireNamespace(call: Call, collection: unknown): string {
  if (typeof collection !== 'string') {
    throw new EngineError(CODES.InvalidNamespace, `collection name has invalid type ${typeof collection}`);
  }
  if (
    collection === '' ||
    collection.includes('\0') ||
    collection.includes('$') ||
    collection.startsWith('.') ||
    collection.endsWith('.') ||
    Buffer.byteLength(collection) + call.db.length > 254
  ) {
    throw new EngineError(CODES.InvalidNamespace, `Invalid collection name: ${call.db}.${collection}`);
  }
  return `${call.db}.${collection}`;
}

/** How many statements one write command may have; drivers split longer lists. */
export const MAX_STATEMENTS = 100_000;

/** The statements or documents of a write command, whatever they are: 16 for none or too many. */
export function readWriteBatch(body: Doc, name: string): readonly unknown[] {
  const value = body[name];
  if (!Array.isArray(value)) throw typeMismatch(`BSON field '${name}' is missing or no array`);
  if (value.length === 0 || value.length > MAX_STATEMENTS) {
    throw new EngineError(
      CODES.InvalidLength,
      `Write batch sizes must be between 1 and ${MAX_STATEMENTS}. Got ${value.length}.`,
    );
  }
  return value;
}

/** A document option, `{}` when absent. */
export function readDoc(body: Doc, name: string): Doc {
  const value = body[name];
  if (value === undefined || value === null) return {};
  if (!isDocument(value)) throw typeMismatch(`BSON field '${name}' is the wrong type, expected type 'object'`);
  return value;
}

/** An integral option that must not be negative, undefined when absent. */
export function readCount(body: Doc, name: string): number | undefined {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  const number = plainNumber(value);
  if (number === undefined) throw typeMismatch(`BSON field '${name}' is the wrong type, expected a number`);
  if (!Number.isInteger(number)) throw failedToParse(`BSON field '${name}' must be an integral number`);
  if (number < 0) throw new EngineError(51024, `BSON field '${name}' value must be >= 0, actual value '${number}'`);
  return number;
}

/** A boolean option; numbers count as MongoDB counts them. */
export function readFlagOption(body: Doc, name: string, fallback = false): boolean {
  const value = body[name];
  if (value === undefined || value === null) return fallback;
  if (typeof value === 'boolean') return value;
  const number = plainNumber(value);
  if (number === undefined) throw typeMismatch(`BSON field '${name}' is the wrong type, expected type 'bool'`);
  return number !== 0;
}

export function readTextOption(body: Doc, name: string): string {
  const value = body[name];
  if (typeof value !== 'string') throw typeMismatch(`BSON field '${name}' is the wrong type, expected type 'string'`);
  return value;
}

/** The number that an engine value of any numeric type holds, undefined for all other values. */
export function plainNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number(value);
  const type = bsonType(value);
  if (type === 'Double') return (value as { value: number }).value;
  return type === 'Decimal128' ? Number(String(value)) : undefined;
}

/** Only the simple collation is there; anything else would sort and compare differently from what was asked. */
export function checkCollation(body: Doc): void {
  const value = body['collation'];
  if (value === undefined || value === null) return;
  const collation = readDoc(body, 'collation');
  if (Object.keys(collation).length === 0) return;
  if (collation['locale'] !== 'simple') throw badValue('only the simple collation is supported');
}
