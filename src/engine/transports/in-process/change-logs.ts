import { decodeDocument } from '../../codec/decode.js';
import { encodeDocument } from '../../codec/encode.js';
import { docFromApp, toApp } from '../../codec/app-values.js';
import { compileFilter, type Filter } from '../../query/match/match.js';
import type { LogSettings } from '../../storage/keys/index-definition.js';
import { beginLog, endLog, eraseRemoved, type LogLimits, oldestMoment, trimLog } from '../../storage/log/keep-log.js';
import { type LoggedChanges, type LogPoint, logPosition, readChanges } from '../../storage/log/read-changes.js';
import { type DocumentHistory, type HistoryQuery, readHistory } from '../../storage/log/read-history.js';
import { conditionsOf, type LongRead } from '../../storage/long-read.js';
import type { Storage } from '../../storage/storage.js';
import { toDriverError } from './driver-errors.js';

/** As the engine's own search, with filters of the application. */
export interface LogSearch {
  epoch: number;
  after: number;
  /** The condition for finding a document as it is now. */
  filter: object;
  /** Only a document that met this is told of once it no longer does; it names only fields that are kept first. */
  earlierAccess: object;
  /** The same for all its other fields; taken as met where a field that it names is not known. */
  earlierConditions: object;
  limit: number;
  maxBytes: number;
  /** Instead of the judgement by `earlier…`: what documents were before, and the most entries to read for it. */
  earlierOf?: number;
}

/** As the engine's own search, for an `_id` of the application. */
export interface DocumentSearch extends Omit<HistoryQuery, 'document'> {
  id: unknown;
}

/** A filter that is tried on documents one by one, outside of any read: it gives the answers of a find. */
export interface Matcher {
  /** Top-level fields that it looks at; null = possibly all. */
  readonly fields: ReadonlySet<string> | null;
  /** Its conditions by path, as far as an index could answer them. */
  readonly conditions: LongRead['conditions'];
  /** Tries it on a document's BSON. */
  matches(bytes: Buffer): boolean;
}

/** A filter of the application, compiled once. */
export function openMatcher(filter: object): Matcher {
  const compiled = compileFilter(docFromApp(filter));
  const { fields } = compiled;
  return {
    fields,
    conditions: conditionsOf(compiled),
    matches: (bytes) =>
      compiled.testBytes(bytes) ?? compiled.matches(decodeDocument(bytes, 'engine', fields ?? undefined)),
  };
}

/** The logs of changes of a database's collections, by name. */
export interface ChangeLogs {
  /**
   * Begins the log of a collection, or has the one that it has keep these fields first too; where it ends. Null when
   * the collection does not exist.
   */
  begin(name: string, settings: LogSettings): Promise<LogPoint | null>;
  /** Where the log ends at this moment, whatever process wrote last; null where nothing is logged. */
  position(name: string): LogPoint | null;
  /** The changes that a search finds, oldest first; null when its position is not in this log any more. */
  read(name: string, search: LogSearch): Promise<LoggedChanges | null>;
  /** The changes of the document with this `_id`, newest first; null where nothing is logged. */
  history(name: string, search: DocumentSearch): Promise<DocumentHistory | null>;
  end(name: string): Promise<void>;
  /** Removes what is beyond the limits from the front; returns how many entries. */
  trim(name: string, limits: LogLimits): Promise<number>;
  /** Erases the values of documents that were removed since; returns how many documents. */
  erase(name: string): Promise<number>;
  /** Bytes of a log's entries. */
  bytes(name: string): number;
  /** Bytes of the entries of all logs of the database. */
  allBytes(): number;
  /** The moment of the oldest entry, in milliseconds since 1970; null for a log without any. */
  oldest(name: string): number | null;
}

/** The logs of the collections of the database `db`. */
export function openChangeLogs(storage: Storage, db: string): ChangeLogs {
  const ns = (name: string): string => `${db}.${name}`;
  const compile = (filter: object): Filter => compileFilter(docFromApp(filter));
  return {
    begin: (name, settings) => beginLog(storage, ns(name), settings),
    position(name) {
      storage.refresh();
      return logPosition(storage, ns(name));
    },
    async read(name, search) {
      const { filter, earlierAccess, earlierConditions, ...rest } = search;
      try {
        const found = await readChanges(storage, ns(name), {
          ...rest,
          filter: compile(filter),
          earlierAccess: compile(earlierAccess),
          earlierConditions: compile(earlierConditions),
        });
        return found && { ...found, changes: found.changes.map((change) => ({ ...change, id: toApp(change.id) })) };
      } catch (error) {
        throw toDriverError(storage.damage.judge(error, ns(name)));
      }
    },
    async history(name, { id, ...search }) {
      try {
        return await readHistory(storage, ns(name), { ...search, document: encodeDocument(docFromApp({ _id: id })) });
      } catch (error) {
        throw toDriverError(storage.damage.judge(error, ns(name)));
      }
    },
    end: (name) => endLog(storage, ns(name)),
    trim: (name, limits) => trimLog(storage, ns(name), limits),
    erase: (name) => eraseRemoved(storage, ns(name)),
    bytes(name) {
      storage.refresh();
      const collection = storage.catalog.find(ns(name));
      return collection?.log ? (storage.catalog.counts(collection.id).log?.bytes ?? 0) : 0;
    },
    allBytes() {
      storage.refresh();
      const logged = storage.catalog.list(ns('')).filter(({ log }) => log !== null);
      return logged.reduce((sum, { id }) => sum + (storage.catalog.counts(id).log?.bytes ?? 0), 0);
    },
    oldest(name) {
      storage.refresh();
      return oldestMoment(storage, ns(name));
    },
  };
}
