import { stat } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { conflict } from '../../../src/errors.js';

export type SqliteRow = Record<string, unknown>;

/** A SQLite file that is only read. */
export interface SqliteFile {
  all(sql: string, ...values: unknown[]): SqliteRow[];
  /** Reads on as the rows are taken, so that memory does not grow with their number. */
  each(sql: string, ...values: unknown[]): Iterable<SqliteRow>;
  close(): void;
}

/** An identifier as SQL has it. */
export const sqlName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Opens a SQLite file for reading, by a library that is loaded only here. 409 NO_DATABASE for what is none. */
export async function openSqlite(path: string): Promise<SqliteFile> {
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
