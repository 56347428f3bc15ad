import { Binary } from '../codec/bson.js';
import { type Doc, isDocument } from '../codec/document.js';
import { CODES, EngineError } from '../errors.js';
import { type Call, command } from './command.js';
import { anything } from './options.js';
import { findRowsInside } from './read/find.js';
import type { Inside } from './transactions.js';
import { deleteInside } from './write/delete.js';
import { findAndModifyInside } from './write/find-and-modify.js';
import { insertInside } from './write/insert.js';
import { updateInside } from './write/update.js';

/** The commands that a transaction may have. */
const INSIDE: Readonly<Record<string, (call: Call, body: Doc) => Inside>> = {
  delete: deleteInside,
  find: findRowsInside,
  findAndModify: findAndModifyInside,
  insert: insertInside,
  update: updateInside,
};

/** Runs a command as a part of its session's transaction: see `Transactions`. */
export async function runInTransaction(call: Call, name: string, body: Doc): Promise<Doc> {
  const { storage, transactions } = call.core;
  const session = sessionOf(body);
  const number = body['txnNumber'];
  if (body['startTransaction'] === true) transactions.begin(session, number);
  delete body['startTransaction'];
  delete body['autocommit'];
  return transactions.run(storage, session, number, () => {
    if (!Object.hasOwn(INSIDE, name)) {
      throw new EngineError(
        CODES.OperationNotSupportedInTransaction,
        `${name} cannot be part of a transaction in this engine: ${Object.keys(INSIDE).join(', ')} can`,
      );
    }
    return INSIDE[name]!(call, body);
  });
}

const OPTIONS = { autocommit: anything, recoveryToken: anything };

export const commitTransaction = command({
  options: { ...OPTIONS, lsid: anything, txnNumber: anything },
  run: ({ core }, options) => core.transactions.commit(core.storage, sessionOf(options), options.txnNumber),
});

export const abortTransaction = command({
  options: { ...OPTIONS, lsid: anything, txnNumber: anything },
  run: ({ core }, options) => core.transactions.abort(sessionOf(options), options.txnNumber),
});

function sessionOf({ lsid }: { lsid?: unknown }): string {
  const id = isDocument(lsid) ? lsid['id'] : null;
  if (!(id instanceof Binary)) {
    throw new EngineError(CODES.InvalidOptions, 'a transaction needs the id of a session: lsid');
  }
  return id.toString('hex');
}
