import { stat } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { conflict } from '../../../src/errors.js';
import { SYSTEM_FIELDS, type Field } from '../../../src/features/collections/fields/field.js';
import type { Note } from '../../../src/features/documents/bulk/extended-json.js';
import { foreignId, findForeignTime, withSystemFields } from './foreign-document.js';

type SqliteRow = Record<string, unknown>;

/** A SQLite file that is only read. */
interface SqliteFile {
  all(sql: string, ...values: unknown[]): SqliteRow[];
  /** Reads on as the rows are taken, so that memory does not grow with their number. */
  each(sql: string, ...values: unknown[]): Iterable<SqliteRow>;
  close(): void;
}

/** An identifier as SQL has it. */
const sqlName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Opens a SQLite file for reading, by a library that is loaded only here. 409 NO_DATABASE for what is none. */
async function openSqlite(path: string): Promise<SqliteFile> {
  const found = await stat(path);
  if (!found.isFile()) throw conflict('NO_DATABASE', `${path} is not a SQLite file`);
  const { default: Database } = await import('libsql');
  try {
    const database = new Database(`${pathToFileURL(path).href}?mode=ro`);
    const withoutNotes = (row: unknown): SqliteRow => {
      const { _metadata: _, ...columns } = row as SqliteRow;
      return columns;
    };
    const file: SqliteFile = {
      all: (sql, ...values) =>
        database
          .prepare(sql)
          .all(...values)
          .map(withoutNotes),
      *each(sql, ...values) {
        for (const row of database.prepare(sql).iterate(...values)) yield withoutNotes(row);
      },
      close: () => database.close(),
    };
    // The file is looked at with the first statement only.
    file.all('SELECT name FROM sqlite_master LIMIT 1');
    return file;
  } catch (error) {
    throw conflict('NO_DATABASE', `${path} cannot be read as a SQLite file (${(error as Error).message})`);
  }
}

/** A collection of PocketBase whose rows become documents. */
export interface PocketBaseCollection {
  name: string;
  /** The same fields here. */
  fields: Field[];
  rows: number;
  /** What is not carried over, for people. */
  notes: string[];
  /** Each with the id that it has there. */
  documents(note: Note): Iterable<{ id: string; document: Record<string, unknown> }>;
}

interface PocketBaseFile {
  /** Collections of documents; those of users and views are left out. */
  collections: PocketBaseCollection[];
  /** Names of the collections of users, the system's own left out. */
  userCollections: string[];
  users(collection: string): Iterable<PocketBaseAccount>;
  close(): void;
}

/** A row of a collection of users, of either form of the table. */
interface PocketBaseAccount {
  id: unknown;
  email: unknown;
  verified: unknown;
  created: unknown;
  passwordHash: unknown;
  fields: Record<string, unknown>;
}

interface Column {
  name: string;
  type: string;
  required: boolean;
  many: boolean;
  /** Of a select. */
  values: string[];
  /** Of a relation: the name of the collection. */
  target: string | null;
}

interface Stored {
  id: string;
  name: string;
  type: string;
  isSystem: boolean;
  columns: Column[];
}

/**
 * Opens the `data.db` of a PocketBase. Versions up to 0.22 keep fields as `schema` with `options`, later ones as
 * `fields`.
 */
export async function openPocketBase(path: string): Promise<PocketBaseFile> {
  const file = await openSqlite(path);
  const stored = readCollections(file, path);
  const own = stored.filter(({ isSystem }) => !isSystem);
  return {
    collections: own.filter(({ type }) => type === 'base').map((each) => describe(file, each)),
    userCollections: own.filter(({ type }) => type === 'auth').map(({ name }) => name),
    *users(collection) {
      const columns = own.find(({ name }) => name === collection)?.columns ?? [];
      for (const row of file.each(`SELECT * FROM ${sqlName(collection)} ORDER BY id`)) yield accountOf(columns, row);
    },
    close: () => file.close(),
  };
}

function readCollections(file: SqliteFile, path: string): Stored[] {
  if (file.all("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '_collections'").length === 0) {
    file.close();
    throw conflict('NO_DATABASE', `${path} has no PocketBase collections: pass the data.db in pb_data`);
  }
  const records = file.all('SELECT * FROM _collections ORDER BY name');
  const names = new Map(records.map(({ id, name }) => [String(id), String(name)]));
  return records.map((record) => ({
    id: String(record.id),
    name: String(record.name),
    type: String(record.type),
    isSystem: Boolean(record.system),
    columns: (readJson(record.fields ?? record.schema) as Record<string, unknown>[])
      .filter(({ name }) => typeof name === 'string')
      .map((field) => readColumn(field, names)),
  }));
}

function readColumn(field: Record<string, unknown>, names: ReadonlyMap<string, string>): Column {
  const options = { ...field, ...(field.options as Record<string, unknown> | undefined) };
  const most = options.maxSelect === undefined ? 1 : Number(options.maxSelect);
  const takesMany = ['select', 'file', 'relation'].includes(String(field.type));
  return {
    name: String(field.name),
    type: String(field.type),
    required: field.required === true,
    // In relations of earlier versions nothing stands for any number.
    many: takesMany && most !== 1,
    values: Array.isArray(options.values) ? options.values.map(String) : [],
    target: names.get(String(options.collectionId)) ?? null,
  };
}

const SYSTEM_NAMES: ReadonlySet<string> = new Set(SYSTEM_FIELDS);

/** Kept by the service here, or of no use outside PocketBase. */
const KEPT_COLUMNS: ReadonlySet<string> = new Set(['id', 'created', 'updated']);

function describe(file: SqliteFile, { name, columns }: Stored): PocketBaseCollection {
  const table = sqlName(name);
  const own = columns.filter((column) => !KEPT_COLUMNS.has(column.name));
  const isAlwaysThere = ({ name: column }: Column): boolean =>
    file.all(
      `SELECT 1 FROM ${table} WHERE ${sqlName(column)} IS NULL OR ${sqlName(column)} IN ('', '[]', 'null') LIMIT 1`,
    ).length === 0;
  // Those of the service here are not declared; their values are kept where they are times.
  const declarable = own.filter((column) => !SYSTEM_NAMES.has(column.name));
  const fields = declarable.map((column) => ({
    ...fieldOf(file, table, column),
    ...(column.required && column.type !== 'bool' && isAlwaysThere(column) && { required: true }),
  }));
  // JSON of several kinds has no type here: its text is kept.
  const read = columns.map((column) =>
    column.type === 'json' && fields.find((field) => field.name === column.name)?.type === 'String'
      ? { ...column, type: 'text' }
      : column,
  );
  return {
    name,
    rows: Number(file.all(`SELECT count(*) AS n FROM ${table}`)[0]!.n),
    fields,
    notes: own.some(({ type }) => type === 'file') ? ['file names only'] : [],
    *documents(note) {
      for (const row of file.each(`SELECT * FROM ${table} ORDER BY id`)) {
        yield { id: String(row.id), document: documentOf(read, row, note) };
      }
    },
  };
}

function fieldOf(file: SqliteFile, table: string, { name, type, many, values, target }: Column): Field {
  const one = (): Omit<Field, 'name'> => {
    if (type === 'number') return { type: 'Number' };
    if (type === 'bool') return { type: 'Boolean' };
    if (type === 'date' || type === 'autodate') return { type: 'Date' };
    if (type === 'geoPoint') return { type: 'Object' };
    if (type === 'select' && values.length > 0) return { type: 'String', enum: values };
    // Names that begin with "users" are those of accounts, which are one collection here.
    if (type === 'relation') return { type: 'Ref', ...(target !== null && isOrdinary(target) && { ref: target }) };
    return { type: 'String' };
  };
  if (type === 'json') return { name, type: jsonType(file, table, name) };
  return many ? { name, type: 'Array', items: one() } : { name, ...one() };
}

const isOrdinary = (name: string): boolean => name === 'users' || !name.toLowerCase().startsWith('users');

/** What the values of a JSON field are; text where they are of several kinds. */
function jsonType(file: SqliteFile, table: string, column: string): 'Object' | 'Array' | 'String' {
  const kind = `json_type(CASE WHEN json_valid(${sqlName(column)}) THEN ${sqlName(column)} END)`;
  const kinds = file.all(`SELECT DISTINCT ${kind} AS kind FROM ${table} WHERE ${sqlName(column)} NOT IN ('', 'null')`);
  if (kinds.length === 1 && kinds[0]!.kind === 'array') return 'Array';
  return kinds.every(({ kind: each }) => each === 'object') ? 'Object' : 'String';
}

/** Columns of an account that are no fields of its user. */
const ACCOUNT_COLUMNS: ReadonlySet<string> = new Set(['email', 'emailVisibility', 'verified', 'password', 'tokenKey']);

function accountOf(columns: readonly Column[], row: SqliteRow): PocketBaseAccount {
  const { id, email, verified, created, passwordHash = row.password } = row;
  const own = columns.filter(({ name }) => !ACCOUNT_COLUMNS.has(name));
  const { _id, createdAt: _created, updatedAt: _updated, ...fields } = documentOf(own, row);
  return { id, email, verified, created, passwordHash, fields };
}

function documentOf(columns: readonly Column[], row: SqliteRow, note: Note = () => undefined): Record<string, unknown> {
  const document: Record<string, unknown> = {};
  for (const column of columns) {
    if (KEPT_COLUMNS.has(column.name)) continue;
    const value = valueOf(column, row[column.name]);
    if (value !== undefined) document[column.name] = value;
  }
  const [created, updated] = [row.created, row.updated].map(findForeignTime);
  return withSystemFields(document, { id: foreignId(String(row.id)).toHexString(), created, updated }, note);
}

/** PocketBase stores an empty text where there is no value. */
function valueOf({ type, many }: Column, value: unknown): unknown {
  if (value === null || value === undefined || value === '') return undefined;
  if (type === 'bool') return Boolean(value);
  if (type === 'date' || type === 'autodate') return findForeignTime(value) ?? value;
  if (type === 'geoPoint') {
    const { lon, lat } = readJson(value) as { lon?: unknown; lat?: unknown };
    return { type: 'Point', coordinates: [lon, lat] };
  }
  if (type === 'json') return readJson(value) ?? undefined;
  const read = many ? readJson(value) : value;
  if (type !== 'relation') return read;
  return Array.isArray(read)
    ? read.map((id) => foreignId(String(id)).toHexString())
    : foreignId(String(read)).toHexString();
}

function readJson(text: unknown): unknown {
  try {
    return JSON.parse(String(text)) as unknown;
  } catch {
    return text;
  }
}
