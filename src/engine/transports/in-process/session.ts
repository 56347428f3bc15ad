import { type AppValueOptions, docFromApp, fromApp } from '../../codec/app-values.js';
import { type Doc, RawDocument } from '../../codec/document.js';
import { encodeDocument } from '../../codec/encode.js';
import type { Core } from '../../commands/command.js';
import { pageRead, type AskedPage, type FoundPage } from '../../commands/read/page-read.js';
import { pointRead } from '../../commands/read/point-read.js';
import { runCommand } from '../../commands/index.js';
import { readEqualities } from '../../query/match/equalities.js';
import { toDriverError } from './driver-errors.js';

/** One database as the in-process transport sees it: how values come in, and how commands are run. */
export interface CommandSession {
  /**
   * Runs a command of engine values, at once where nothing has to be waited for; refusals come as the driver's errors.
   * It is interrupted when `signal` aborts.
   */
  run(body: Doc, signal?: AbortSignal): Promise<Doc> | Doc;
  /**
   * A copy of the one document that a filter of plain equalities leads to by its `_id`, null when there is none;
   * undefined for any other filter.
   */
  findPoint(collection: string, filter: object): Buffer | null | undefined;
  /** `find` and `count` for a page in one, of the application's filter; undefined where it cannot be read at once. */
  findPage(collection: string, asked: AskedPage): FoundPage | undefined;
  /** A value of the application in the engine's representation. */
  read(value: unknown): unknown;
  readDoc(value: object): Doc;
  /** As `readDoc`, but without a copy where plain equalities mean the same on both sides. */
  readFilter(value: object): Doc;
  /** A document of the application in its stored form, `id` first. */
  encode(doc: Doc, id: unknown): RawDocument;
}

/** A session that runs commands on one database and converts values by the options of the driver. */
export function openCommandSession(core: Core, db: string, options: AppValueOptions): CommandSession {
  const call = { core, db };
  const readFilter = (value: object): Doc =>
    readEqualities(value) === null ? docFromApp(value, options) : (value as Doc);
  return {
    run(body, signal) {
      try {
        const reply = runCommand(signal === undefined ? call : { ...call, signal }, body);
        return reply instanceof Promise ? reply.catch(refuse) : reply;
      } catch (error) {
        return refuse(error);
      }
    },
    findPoint(collection, filter) {
      try {
        return pointRead.run(call, collection, filter);
      } catch (error) {
        return refuse(error);
      }
    },
    findPage(collection, asked) {
      try {
        return pageRead.run(call, collection, { ...asked, filter: readFilter(asked.filter) });
      } catch (error) {
        return refuse(error);
      }
    },
    read: (value) => fromApp(value, options),
    readDoc: (value) => docFromApp(value, options),
    readFilter,
    encode: (doc, id) => new RawDocument(encodeDocument(doc, id, options.ignoreUndefined)),
  };
}

function refuse(error: unknown): never {
  throw toDriverError(error);
}
