import { toApp } from '../../codec/app-values.js';
import { decodeDocument } from '../../codec/decode.js';
import type { Doc, Row } from '../../codec/document.js';
import type { CursorReply } from '../../commands/read/cursors.js';
import { bulkWrite, type BulkOperation, type BulkResult } from './bulk-write.js';
import { InProcessCursor, presentRow, readSort } from './cursor.js';
import { invalidArgument, serverError } from './driver-errors.js';
import type { CommandSession } from './session.js';
import { refuseOperators, requireOperators, takeId } from './write-arguments.js';

type Options = Readonly<Record<string, unknown>> | undefined;

/** The driver's `Collection`, as far as `DataCollection` promises it, over commands run in this process. */
export class InProcessCollection {
  constructor(
    private readonly session: CommandSession,
    readonly dbName: string,
    readonly collectionName: string,
  ) {}

  get namespace(): string {
    return `${this.dbName}.${this.collectionName}`;
  }

  find(filter: object = {}, options?: Options): InProcessCursor {
    const body: Doc = { find: this.collectionName, filter: this.session.readFilter(filter) };
    addFindOptions(this.session, body, options);
    const cursor = new InProcessCursor(this.session, body, options?.['raw'] === true, false, signalOf(options));
    if (typeof options?.['batchSize'] === 'number') cursor.batchSize(options['batchSize']);
    return cursor;
  }

  async findOne(filter: object = {}, options?: Options): Promise<unknown> {
    const isRaw = options?.['raw'] === true;
    const point = asksForAll(options) ? this.session.findPoint(this.collectionName, filter) : undefined;
    if (point !== undefined) return point === null || isRaw ? point : decodeDocument(point, 'app');
    const body: Doc = { find: this.collectionName, filter: this.session.readFilter(filter) };
    addFindOptions(this.session, body, options);
    body['limit'] = 1;
    body['singleBatch'] = true;
    const running = this.session.run(body);
    const reply = running instanceof Promise ? await running : running;
    const [row] = (reply['cursor'] as CursorReply).firstBatch;
    return row === undefined ? null : presentRow(row, isRaw);
  }

  async insertOne(doc: Doc): Promise<unknown> {
    const id = takeId(doc);
    const reply = await this.session.run({
      insert: this.collectionName,
      documents: [this.session.encode(doc, id)],
    });
    const errors = reply['writeErrors'] as Doc[] | undefined;
    if (errors !== undefined) throw serverError(errors[0]!);
    return { acknowledged: true, insertedId: id };
  }

  async insertMany(docs: Doc[], options?: Options): Promise<unknown> {
    if (!Array.isArray(docs)) throw invalidArgument('Argument "docs" must be an array of documents');
    const operations = docs.map((document) => ({ insertOne: { document } }));
    const { insertedCount, insertedIds } = await this.bulkWrite(operations, options);
    return { acknowledged: true, insertedCount, insertedIds };
  }

  async updateOne(filter: object, update: object, options?: Options): Promise<unknown> {
    requireOperators(update);
    return this.runUpdate(filter, update, false, options);
  }

  async updateMany(filter: object, update: object, options?: Options): Promise<unknown> {
    requireOperators(update);
    return this.runUpdate(filter, update, true, options);
  }

  async replaceOne(filter: object, replacement: object, options?: Options): Promise<unknown> {
    refuseOperators(replacement);
    return this.runUpdate(filter, replacement, false, options);
  }

  deleteOne(filter: object = {}, options?: Options): Promise<unknown> {
    return this.runDelete(filter, 1, options);
  }

  deleteMany(filter: object = {}, options?: Options): Promise<unknown> {
    return this.runDelete(filter, 0, options);
  }

  async findOneAndUpdate(filter: object, update: object, options?: Options): Promise<unknown> {
    requireOperators(update);
    return this.runFindAndModify(filter, { update: this.session.read(update) }, options);
  }

  async findOneAndReplace(filter: object, replacement: object, options?: Options): Promise<unknown> {
    refuseOperators(replacement);
    return this.runFindAndModify(filter, { update: this.session.read(replacement) }, options);
  }

  findOneAndDelete(filter: object, options?: Options): Promise<unknown> {
    return this.runFindAndModify(filter, { remove: true }, options);
  }

  bulkWrite(operations: readonly BulkOperation[], options?: Options): Promise<BulkResult> {
    return bulkWrite(this.session, this.collectionName, operations, {
      ordered: options?.['ordered'] !== false,
      bypassDocumentValidation: options?.['bypassDocumentValidation'] === true,
    });
  }

  async countDocuments(filter: object = {}, options?: Options): Promise<number> {
    const body: Doc = { count: this.collectionName, query: this.session.readFilter(filter) };
    copyOptions(this.session, body, options, ['limit', 'skip', 'maxTimeMS', 'hint', 'collation']);
    const running = this.session.run(body, signalOf(options));
    return (running instanceof Promise ? await running : running)['n'] as number;
  }

  async estimatedDocumentCount(options?: Options): Promise<number> {
    const body: Doc = { count: this.collectionName };
    copyOptions(this.session, body, options, ['maxTimeMS']);
    return (await this.session.run(body))['n'] as number;
  }

  async distinct(key: string, filter: object = {}, options?: Options): Promise<unknown> {
    const body: Doc = { distinct: this.collectionName, key, query: this.session.readDoc(filter) };
    copyOptions(this.session, body, options, ['maxTimeMS', 'collation']);
    return toApp((await this.session.run(body))['values']);
  }

  aggregate(pipeline: object[] = [], options?: Options): InProcessCursor {
    return aggregateCursor(this.session, this.collectionName, pipeline, options);
  }

  async createIndex(key: unknown, options?: Options): Promise<string> {
    const [name] = await this.createIndexes([{ ...options, key: readSort(key) }]);
    return name!;
  }

  async createIndexes(specs: object[]): Promise<string[]> {
    const indexes = specs.map((spec) => readIndexDescription(this.session, spec as Doc));
    await this.session.run({ createIndexes: this.collectionName, indexes });
    return indexes.map((index) => index['name'] as string);
  }

  async dropIndex(name: string): Promise<unknown> {
    return toApp({ ...(await this.session.run({ dropIndexes: this.collectionName, index: name })), ok: 1 });
  }

  async dropIndexes(): Promise<boolean> {
    await this.session.run({ dropIndexes: this.collectionName, index: '*' });
    return true;
  }

  listIndexes(): InProcessCursor {
    return new InProcessCursor(this.session, { listIndexes: this.collectionName }, false, true);
  }

  async indexes(): Promise<unknown> {
    return this.listIndexes().toArray();
  }

  async indexExists(names: string | string[]): Promise<boolean> {
    const existing = new Set(((await this.indexes()) as Doc[]).map((index) => index['name']));
    return (Array.isArray(names) ? names : [names]).every((name) => existing.has(name));
  }

  async rename(name: string, options?: Options): Promise<InProcessCollection> {
    const to = `${this.dbName}.${name}`;
    await this.session.run({ renameCollection: this.namespace, to, dropTarget: options?.['dropTarget'] === true });
    return new InProcessCollection(this.session, this.dbName, name);
  }

  async drop(): Promise<boolean> {
    await this.session.run({ drop: this.collectionName });
    return true;
  }

  async options(): Promise<unknown> {
    const filter = { name: this.collectionName };
    const [found] = await new InProcessCursor(this.session, { listCollections: 1, filter }, false, true).toArray();
    return (found as Doc | undefined)?.['options'] ?? {};
  }

  async isCapped(): Promise<boolean> {
    return Promise.resolve(false);
  }

  private async runUpdate(filter: object, change: object, multi: boolean, options: Options): Promise<unknown> {
    const statement: Doc = { q: this.session.readFilter(filter), u: this.session.read(change), multi };
    copyOptions(this.session, statement, options, ['upsert', 'arrayFilters', 'hint', 'collation', 'sort']);
    const body: Doc = { update: this.collectionName, updates: [statement] };
    copyOptions(this.session, body, options, ['maxTimeMS', 'let']);
    const reply = await this.session.run(body);
    const errors = reply['writeErrors'] as Doc[] | undefined;
    if (errors !== undefined) throw serverError(errors[0]!);
    const upserted = reply['upserted'] as { _id: unknown }[] | undefined;
    return {
      acknowledged: true,
      modifiedCount: reply['nModified'] as number,
      upsertedId: upserted === undefined ? null : toApp(upserted[0]!._id),
      upsertedCount: upserted === undefined ? 0 : 1,
      matchedCount: upserted === undefined ? (reply['n'] as number) : 0,
    };
  }

  private async runDelete(filter: object, limit: number, options: Options): Promise<unknown> {
    const statement: Doc = { q: this.session.readFilter(filter), limit };
    copyOptions(this.session, statement, options, ['hint', 'collation']);
    const body: Doc = { delete: this.collectionName, deletes: [statement] };
    copyOptions(this.session, body, options, ['maxTimeMS', 'let']);
    const reply = await this.session.run(body);
    const errors = reply['writeErrors'] as Doc[] | undefined;
    if (errors !== undefined) throw serverError(errors[0]!);
    return { acknowledged: true, deletedCount: reply['n'] as number };
  }

  private async runFindAndModify(filter: object, change: Doc, options: Options): Promise<unknown> {
    const body: Doc = { findAndModify: this.collectionName, query: this.session.readFilter(filter), ...change };
    copyOptions(this.session, body, options, [
      'upsert',
      'arrayFilters',
      'hint',
      'collation',
      'maxTimeMS',
      'let',
      'sort',
    ]);
    if (options?.['projection'] !== undefined) body['fields'] = this.session.readDoc(options['projection'] as object);
    if (options?.['returnDocument'] === 'after') body['new'] = true;
    const reply = await this.session.run(body);
    const row = reply['value'] as Row | null;
    const value = row === null ? null : presentRow(row, options?.['raw'] === true);
    if (options?.['includeResultMetadata'] !== true) return value;
    return { lastErrorObject: toApp(reply['lastErrorObject']), value, ok: 1 };
  }
}

/** An aggregation's cursor; `source` is the collection's name, or 1 for a pipeline that brings its own documents. */
export function aggregateCursor(
  session: CommandSession,
  source: string | 1,
  pipeline: object[],
  options: Options,
): InProcessCursor {
  const body: Doc = { aggregate: source, pipeline: session.read(pipeline) };
  copyOptions(session, body, options, ['maxTimeMS', 'hint', 'let', 'collation', 'allowDiskUse']);
  const cursor = new InProcessCursor(session, body, options?.['raw'] === true, true, signalOf(options));
  if (typeof options?.['batchSize'] === 'number') cursor.batchSize(options['batchSize']);
  return cursor;
}

/** Aborted when nobody waits for the answer any more, as the driver's option of that name. */
function signalOf(options: Options): AbortSignal | undefined {
  return options?.['signal'] as AbortSignal | undefined;
}

const FIND_OPTIONS = 'limit skip maxTimeMS hint collation projection let sort batchBytes'.split(' ');

function addFindOptions(session: CommandSession, body: Doc, options: Options): void {
  if (options === undefined) return;
  copyOptions(session, body, options, FIND_OPTIONS);
}

/** Copies the named options that are set, in the engine's representation. */
function copyOptions(session: CommandSession, body: Doc, options: Options, names: readonly string[]): void {
  if (options === undefined) return;
  for (const name of names) {
    const value = options[name];
    if (value === undefined || value === null) continue;
    body[name] = name === 'sort' ? readSort(value) : session.read(value);
  }
}

function readIndexDescription(session: CommandSession, spec: Doc): Doc {
  const key = readSort(spec['key']);
  const name = spec['name'] ?? Object.entries(key).flat().join('_');
  const index: Doc = { key, name };
  for (const option of [
    'unique',
    'sparse',
    'hidden',
    'partialFilterExpression',
    'expireAfterSeconds',
    'collation',
    'background',
  ]) {
    if (spec[option] !== undefined) index[option] = session.read(spec[option]);
  }
  return index;
}

/** Whether a find has no option that asks for less than the whole document, or for anything but the answer. */
function asksForAll(options: Options): boolean {
  for (const name in options) if (!OF_NO_CONCERN.has(name)) return false;
  return true;
}

/** In one process each read is of the last commit. */
const OF_NO_CONCERN: ReadonlySet<string> = new Set(['raw', 'readConcern']);
