import { type AppValueOptions, toApp } from '../../codec/app-values.js';
import { type Doc, isDocument, RawDocument } from '../../codec/document.js';
import { decodeDocument } from '../../codec/decode.js';
import type { Core } from '../../commands/command.js';
import type { AskedPage, FoundPage } from '../../commands/read/page-read.js';
import { aggregateCursor, InProcessCollection } from './collection.js';
import type { DataDb } from './contract.js';
import { InProcessCursor } from './cursor.js';
import { openCommandSession, type CommandSession } from './session.js';

/** The driver's `Db`, as far as `DataDb` promises it, over commands run in this process. */
class InProcessDb {
  private readonly session: CommandSession;

  constructor(
    private readonly core: Core,
    readonly databaseName: string,
    private readonly options: AppValueOptions,
  ) {
    this.session = openCommandSession(core, databaseName, options);
  }

  collection(name: string): InProcessCollection {
    return new InProcessCollection(this.session, this.databaseName, name);
  }

  findPoint(collection: string, filter: object): Buffer | null | undefined {
    return this.session.findPoint(collection, filter);
  }

  findPage(collection: string, asked: AskedPage): FoundPage | undefined {
    return this.session.findPage(collection, asked);
  }

  async createCollection(name: string): Promise<InProcessCollection> {
    await this.session.run({ create: name });
    return this.collection(name);
  }

  async collections(): Promise<InProcessCollection[]> {
    const found = (await this.listCollections({}, { nameOnly: true }).toArray()) as { name: string }[];
    return found.map(({ name }) => this.collection(name));
  }

  listCollections(filter: object = {}, options?: { nameOnly?: boolean; batchSize?: number }): InProcessCursor {
    const body = { listCollections: 1, filter: this.session.readDoc(filter), nameOnly: options?.nameOnly === true };
    return new InProcessCursor(this.session, body, false, true);
  }

  aggregate(pipeline: object[] = [], options?: Readonly<Record<string, unknown>>): InProcessCursor {
    return aggregateCursor(this.session, 1, pipeline, options);
  }

  async command(command: object): Promise<Doc> {
    const reply = toApp(presentRows(await this.session.run(this.session.readDoc(command)))) as Doc;
    return { ...reply, ok: 1 };
  }

  async dropDatabase(): Promise<boolean> {
    await this.session.run({ dropDatabase: 1 });
    return true;
  }

  async dropCollection(name: string): Promise<boolean> {
    await this.session.run({ drop: name });
    return true;
  }

  stats(): Promise<Doc> {
    return this.command({ dbStats: 1 });
  }

  admin(): object {
    const admin = new InProcessDb(this.core, 'admin', this.options);
    return {
      ping: () => admin.command({ ping: 1 }),
      command: (command: object) => admin.command(command),
      listDatabases: (options?: { nameOnly?: boolean; filter?: object }) =>
        admin.command({ listDatabases: 1, ...options }),
      buildInfo: () => admin.command({ buildInfo: 1 }),
      serverStatus: () => admin.command({ serverStatus: 1 }),
    };
  }
}

/** Stored documents inside a reply are decoded, so that the reply is plain. */
function presentRows(value: unknown): unknown {
  if (value instanceof RawDocument) return decodeDocument(value.bytes);
  if (Array.isArray(value)) return value.map(presentRows);
  if (!isDocument(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, presentRows(field)]));
}

/** A database of the engine with the driver's methods. */
export function openDataDb(core: Core, name: string, options: AppValueOptions): DataDb {
  // The class has the part of the driver's interface that the contract promises; documents have any type.
  return new InProcessDb(core, name, options) as unknown as DataDb;
}
