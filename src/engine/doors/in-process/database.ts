import { docFromApp, toApp } from '../../codec/app-values.js';
import { type Doc, RawDocument } from '../../codec/document.js';
import { decodeDocument } from '../../codec/decode.js';
import { type Core } from '../../commands/command.js';
import { aggregateCursor, InProcessCollection } from './collection.js';
import { type DataDb } from './contract.js';
import { InProcessCursor } from './cursor.js';
import { openRun, type Run } from './run.js';

/** The driver's `Db`, as far as `DataDb` promises it, over commands run in this process. */
class InProcessDb {
  private readonly run: Run;

  constructor(
    private readonly core: Core,
    readonly databaseName: string,
  ) {
    this.run = openRun(core, databaseName);
  }

  collection(name: string): InProcessCollection {
    return new InProcessCollection(this.run, this.databaseName, name);
  }

  async createCollection(name: string): Promise<InProcessCollection> {
    await this.run({ create: name });
    return this.collection(name);
  }

  async collections(): Promise<InProcessCollection[]> {
    const found = (await this.listCollections({}, { nameOnly: true }).toArray()) as { name: string }[];
    return found.map(({ name }) => this.collection(name));
  }

  listCollections(filter: object = {}, options?: { nameOnly?: boolean; batchSize?: number }): InProcessCursor {
    const body = { listCollections: 1, filter: docFromApp(filter), nameOnly: options?.nameOnly === true };
    return new InProcessCursor(this.run, body, false, true);
  }

  aggregate(pipeline: object[] = [], options?: Readonly<Record<string, unknown>>): InProcessCursor {
    return aggregateCursor(this.run, 1, pipeline, options);
  }

  async command(command: object): Promise<Doc> {
    const reply = toApp(presentRows(await this.run(docFromApp(command)))) as Doc;
    return { ...reply, ok: 1 };
  }

  async dropDatabase(): Promise<boolean> {
    await this.run({ dropDatabase: 1 });
    return true;
  }

  async dropCollection(name: string): Promise<boolean> {
    await this.run({ drop: name });
    return true;
  }

  stats(): Promise<Doc> {
    return this.command({ dbStats: 1 });
  }

  admin(): object {
    const admin = new InProcessDb(this.core, 'admin');
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
  if (value === null || typeof value !== 'object' || value instanceof Date || '_bsontype' in value) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, presentRows(field)]));
}

export function openDatabase(core: Core, name: string): DataDb {
  return new InProcessDb(core, name) as unknown as DataDb;
}
