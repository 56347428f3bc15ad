import { type Doc, isDocument } from '../codec/document.js';
import { CODES, EngineError, typeMismatch } from '../errors.js';
import type { Storage } from '../storage/storage.js';
import { type Option, optionReader, type OptionTable } from './options.js';
import type { Cursors } from './read/cursors.js';
import type { Transactions } from './transactions.js';

/** State shared by all commands of one opened engine. */
export interface Core {
  readonly storage: Storage;
  readonly cursors: Cursors;
  readonly transactions: Transactions;
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
  /** Aborted when the client is gone. */
  readonly signal?: AbortSignal | undefined;
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

/** One command of the engine. */
export interface Command<T = unknown> {
  /** It only reads, so that it can begin again in another thread when it throws TOO_LONG_HERE. */
  readonly leaves: boolean;
  /** The options of a body, by the command's table; `name` is the one that was sent, of several. */
  readonly read: (body: Doc, name: string) => T;
  run(call: Call, body: Doc, name?: string): Promise<Doc> | Doc;
}

/**
 * A command with the table of its options. `run` is given them as they were read, and the value of the command's own
 * field, which mostly names a collection.
 */
export function command<T extends object>(definition: {
  readonly options: OptionTable<T>;
  readonly leaves?: true;
  readonly run: (call: Call, options: T, target: unknown) => Promise<Doc> | Doc;
}): Command<T> {
  const { run, options, leaves = false } = definition;
  const read = optionReader(options, (field, name) => field === name || COMMON_FIELDS.has(field));
  return {
    leaves,
    read,
    run: (call, body, name = commandName(body)!) => run(call, read(body, name), body[name]),
  };
}

/** The name of the command that a body asks for: its first field. */
export function commandName(body: Doc): string | undefined {
  for (const name in body) if (Object.hasOwn(body, name)) return name;
  return undefined;
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

/**
 * A reader of a write command's statements by their table. What is wrong with one is an error of the command, before
 * any is run.
 */
export function statementReader<T extends object>(
  table: OptionTable<T>,
  of: string,
): (statements: readonly unknown[]) => readonly T[] {
  const read = optionReader(table);
  return (statements) =>
    statements.map((statement) => {
      if (!isDocument(statement)) throw typeMismatch(`BSON field '${of}' must contain documents`);
      return read(statement, of);
    });
}

/** The statements or documents of a write command, whatever they are: 16 for none or too many. */
export const batch: Option<readonly unknown[]> = {
  fallback: [],
  required: true,
  read(value, name, of) {
    if (!Array.isArray(value)) throw typeMismatch(`BSON field '${of}.${name}' is no array`);
    if (value.length === 0 || value.length > MAX_STATEMENTS) {
      throw new EngineError(
        CODES.InvalidLength,
        `Write batch sizes must be between 1 and ${MAX_STATEMENTS}. Got ${value.length}.`,
      );
    }
    return value as unknown[];
  },
};

/** Refuses writes into names that MongoDB keeps for itself. */
export function requireWritable(ns: string): void {
  const name = ns.slice(ns.indexOf('.') + 1);
  if (name.startsWith('system.')) throw new EngineError(CODES.InvalidNamespace, `Invalid system namespace: ${ns}`);
}

/** The entry of `writeErrors` for a statement that was refused; anything but a refusal is thrown on. */
export function describeWriteError(index: number, error: unknown): Doc {
  if (!(error instanceof EngineError)) throw error;
  return { index, code: error.code, errmsg: error.message, ...error.extra };
}
