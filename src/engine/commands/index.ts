import type { Doc } from '../codec/document.js';
import { CODES, EngineError } from '../errors.js';
import { collMod, collStats, dbStats, serverStatus } from './administration.js';
import { aggregate } from './read/aggregate.js';
import {
  create,
  drop,
  dropDatabase,
  listCollectionsCommand,
  listDatabases,
  renameCollectionCommand,
} from './collections.js';
import { type Call, type Command, command, commandName, type Readers } from './command.js';
import { countCommand } from './read/count.js';
import { deleteCommand } from './write/delete.js';
import { distinct } from './read/distinct.js';
import { explain } from './read/explain.js';
import { find } from './read/find.js';
import { findAndModify } from './write/find-and-modify.js';
import { getMore, killCursors } from './read/get-more.js';
import { buildInfo, connectionStatus, endSessionsCommand, helloCommand, isMaster, ping } from './handshake.js';
import {
  currentOp,
  getCmdLineOpts,
  getLog,
  getParameter,
  hostInfo,
  REFUSED_COMMANDS,
  validateCommand,
  whatsmyuri,
} from './diagnostics.js';
import { createIndexes, dropIndexes, listIndexes } from './indexes.js';
import { insert } from './write/insert.js';
import { TOO_LONG_HERE } from './pace.js';
import { abortTransaction, commitTransaction, runInTransaction } from './transaction-commands.js';
import { update } from './write/update.js';

/** The commands that the engine answers, each as tools read it. */
const listCommands = command({
  options: {},
  run: () => ({
    commands: Object.fromEntries(
      Object.keys(ENGINE_COMMANDS).map((name) => [
        name,
        { help: '', requiresAuth: false, secondaryOk: true, adminOnly: false, apiVersions: [] },
      ]),
    ),
  }),
});

/** Every command that the engine answers, by the name that clients send. */
export const ENGINE_COMMANDS: Readonly<Record<string, Command>> = {
  abortTransaction,
  aggregate,
  buildInfo,
  buildinfo: buildInfo,
  collMod,
  collStats,
  collstats: collStats,
  commitTransaction,
  connectionStatus,
  count: countCommand,
  create,
  createIndexes,
  currentOp,
  dbStats,
  dbstats: dbStats,
  delete: deleteCommand,
  deleteIndexes: dropIndexes,
  distinct,
  drop,
  dropDatabase,
  dropIndexes,
  endSessions: endSessionsCommand,
  explain,
  find,
  findAndModify,
  findandmodify: findAndModify,
  getCmdLineOpts,
  getLog,
  getMore,
  getParameter,
  hello: helloCommand,
  hostInfo,
  insert,
  isMaster,
  ismaster: isMaster,
  killCursors,
  listCollections: listCollectionsCommand,
  listCommands,
  listDatabases,
  listIndexes,
  ping,
  renameCollection: renameCollectionCommand,
  serverStatus,
  update,
  validate: validateCommand,
  whatsmyuri,
};

/**
 * Runs the command that the body's first field names; 59 when there is none of that name. What needs no turn of the
 * event loop is answered, or refused, at once instead of by a promise.
 */
export function runCommand(call: Call, body: Doc): Promise<Doc> | Doc {
  const name = commandName(body);
  const known = name !== undefined && Object.hasOwn(ENGINE_COMMANDS, name);
  const { commandCounts } = call.core;
  const countedAs = known ? name : '<UNKNOWN>';
  commandCounts.set(countedAs, (commandCounts.get(countedAs) ?? 0) + 1);
  if (!known) {
    if (name !== undefined && Object.hasOwn(REFUSED_COMMANDS, name)) throw new EngineError(...REFUSED_COMMANDS[name]!);
    throw new EngineError(CODES.CommandNotFound, `no such command: '${String(name)}'`);
  }
  const command = ENGINE_COMMANDS[name]!;
  const { readers } = call.core;
  const judge = (error: unknown): never => {
    throw judgeError(call, body[name], error);
  };
  try {
    if (body['autocommit'] === false && !ENDS.has(name)) return runInTransaction(call, name, body).catch(judge);
    const leaves = readers !== null && command.leaves;
    const reply = leaves ? runOrLeave(readers, command, call, body) : command.run(call, body, name);
    return reply instanceof Promise ? reply.catch(judge) : reply;
  } catch (error) {
    return judge(error);
  }
}

/** What a command has thrown; of damage the collection that it was about is named. */
function judgeError({ core, db }: Call, target: unknown, error: unknown): unknown {
  if (error instanceof EngineError) return error;
  return core.storage.damage.judge(error, typeof target === 'string' ? `${db}.${target}` : null);
}

/** What ends a transaction is no part of it. */
const ENDS: ReadonlySet<string> = new Set(['commitTransaction', 'abortTransaction']);

function runOrLeave(readers: Readers, command: Command, call: Call, body: Doc): Promise<Doc> | Doc {
  const leave = (error: unknown): Promise<Doc> => {
    if (error !== TOO_LONG_HERE) throw error;
    return readers.run(call, body);
  };
  try {
    const reply = command.run(call, body);
    return reply instanceof Promise ? reply.catch(leave) : reply;
  } catch (error) {
    return leave(error);
  }
}
