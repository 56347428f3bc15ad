import { toApp } from '../../codec/app-values.js';
import type { Doc } from '../../codec/document.js';
import { MAX_STATEMENTS } from '../../commands/command.js';
import { bulkError, bulkItemError, invalidArgument } from './driver-errors.js';
import type { CommandSession } from './session.js';
import { refuseOperators, requireOperators, takeId } from './write-arguments.js';

/** One operation as the driver's `bulkWrite` takes it: `{ insertOne: { document } }`, `{ updateOne: { ... } }`, ... */
export type BulkOperation = Readonly<Record<string, unknown>>;

interface Statement {
  command: 'insert' | 'update' | 'delete';
  value: unknown;
  id?: unknown;
}

/** The sum of all operations of a bulk, with the driver's names. */
export interface BulkResult {
  insertedCount: number;
  matchedCount: number;
  modifiedCount: number;
  deletedCount: number;
  upsertedCount: number;
  upsertedIds: Record<number, unknown>;
  insertedIds: Record<number, unknown>;
  ok: 1;
}

const LIST = { insert: 'documents', update: 'updates', delete: 'deletes' } as const;

/** Runs the operations as few commands: neighbours of one kind together, in their order (ordered) or not. */
export async function bulkWrite(
  session: CommandSession,
  collection: string,
  operations: readonly BulkOperation[],
  { ordered, bypassDocumentValidation }: { ordered: boolean; bypassDocumentValidation: boolean },
): Promise<BulkResult> {
  const isList: boolean = Array.isArray(operations);
  if (!isList) throw invalidArgument('Argument "operations" must be an array of documents');
  if (operations.length === 0) throw invalidArgument('Invalid BulkOperation, Batch cannot be empty');
  const statements = operations.map((operation) => readOperation(session, operation));
  const result: BulkResult = {
    insertedCount: 0,
    matchedCount: 0,
    modifiedCount: 0,
    deletedCount: 0,
    upsertedCount: 0,
    upsertedIds: {},
    insertedIds: {},
    ok: 1,
  };
  const errors: Doc[] = [];
  let from = 0;
  while (from < statements.length) {
    const { command } = statements[from]!;
    let to = from + 1;
    while (to < statements.length && to - from < MAX_STATEMENTS && statements[to]!.command === command) to++;
    const list = statements.slice(from, to);
    const reply = await session.run({
      [command]: collection,
      [LIST[command]]: list.map((one) => one.value),
      ordered,
      ...(bypassDocumentValidation && command !== 'delete' && { bypassDocumentValidation }),
    });
    for (const error of addReply(result, reply, list, from, ordered)) errors.push(error);
    if (ordered && errors.length > 0) break;
    from = to;
  }
  if (errors.length === 0) return result;
  const items = errors.map((error) => bulkItemError(error, operations[error['index'] as number]));
  throw bulkError(String(errors[0]!['errmsg']), errors[0]!['code'] as number, items, result);
}

/** Adds one command's reply; returns its errors with the positions in the whole bulk. */
function addReply(result: BulkResult, reply: Doc, list: readonly Statement[], from: number, ordered: boolean): Doc[] {
  const errors = ((reply['writeErrors'] as Doc[] | undefined) ?? []).map((error): Doc => ({
    ...error,
    index: (error['index'] as number) + from,
  }));
  const n = reply['n'] as number;
  switch (list[0]!.command) {
    case 'insert': {
      result.insertedCount += n;
      const failed = new Set(errors.map((error) => error['index'] as number));
      const end = ordered && errors.length > 0 ? (errors[0]!['index'] as number) - from : list.length;
      for (let i = 0; i < end; i++) if (!failed.has(i + from)) result.insertedIds[i + from] = list[i]!.id;
      break;
    }
    case 'delete':
      result.deletedCount += n;
      break;
    case 'update': {
      const upserted = (reply['upserted'] as { index: number; _id: unknown }[] | undefined) ?? [];
      result.matchedCount += n - upserted.length;
      result.modifiedCount += reply['nModified'] as number;
      result.upsertedCount += upserted.length;
      for (const { index, _id } of upserted) result.upsertedIds[index + from] = toApp(_id);
    }
  }
  return errors;
}

function readOperation(session: CommandSession, operation: BulkOperation): Statement {
  const [kind, given] = Object.entries(operation)[0] ?? [];
  const options = (given ?? {}) as Readonly<Record<string, unknown>>;
  switch (kind) {
    case 'insertOne': {
      const doc = (options['document'] ?? options) as Doc;
      const id = takeId(doc);
      return { command: 'insert', value: session.encode(doc, id), id };
    }
    case 'updateOne':
    case 'updateMany':
      requireOperators(options['update']);
      return updateStatement(session, options, options['update'], kind === 'updateMany');
    case 'replaceOne':
      refuseOperators(options['replacement']);
      return updateStatement(session, options, options['replacement'], false);
    case 'deleteOne':
    case 'deleteMany': {
      const value: Doc = { q: session.readDoc(options['filter'] as object), limit: kind === 'deleteOne' ? 1 : 0 };
      for (const name of ['hint', 'collation']) {
        if (options[name] !== undefined) value[name] = session.read(options[name]);
      }
      return { command: 'delete', value };
    }
    default:
      throw invalidArgument(
        'bulkWrite only supports insertOne, updateOne, updateMany, deleteOne, deleteMany, replaceOne',
      );
  }
}

function updateStatement(
  session: CommandSession,
  options: Readonly<Record<string, unknown>>,
  change: unknown,
  multi: boolean,
): Statement {
  const value: Doc = { q: session.readDoc(options['filter'] as object), u: session.read(change), multi };
  for (const name of ['upsert', 'arrayFilters', 'hint', 'collation', 'sort']) {
    if (options[name] !== undefined) value[name] = session.read(options[name]);
  }
  return { command: 'update', value };
}
