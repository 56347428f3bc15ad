import { type Doc, isDocument } from '../../codec/document.js';
import { failedToParse, unsupported } from '../../errors.js';
import type { ExpressionContext } from '../../query/expression.js';
import { compileUpdate } from '../../query/update/update.js';
import {
  batch,
  type Call,
  command,
  requireNamespace,
  statementReader,
  requireWritable,
  describeWriteError,
} from '../command.js';
import {
  atOneMoment,
  checkMulti,
  type Modification,
  modifyAllInside,
  modifyMany,
  modifyOne,
  modifyOneInside,
  PartlyModified,
} from './modify.js';
import {
  anything,
  collationOption,
  countOption,
  documentOption,
  flagOption,
  givenDocument,
  ignored,
  listOption,
} from '../options.js';
import { Pace } from '../pace.js';
import type { Inside } from '../transactions.js';
import { compileQuery } from '../read/query.js';
import { readVariables } from '../read/variables.js';

/** Options that update statements and findAndModify share. */
export const MODIFICATION_OPTIONS = {
  sort: documentOption,
  hint: anything,
  collation: collationOption,
  arrayFilters: listOption,
  upsert: flagOption(false),
};

/** The statements of the command, read before the first is run. */
export const readUpdates = statementReader(
  {
    ...MODIFICATION_OPTIONS,
    q: documentOption,
    u: anything,
    c: givenDocument,
    multi: flagOption(false),
    upsertSupplied: ignored,
  },
  'updates',
);
type Statement = ReturnType<typeof readUpdates>[number];

export const update = command({
  options: {
    updates: batch,
    ordered: flagOption(true),
    let: givenDocument,
    maxTimeMS: countOption(undefined),
    bypassDocumentValidation: ignored,
  },
  async run(call, options, target) {
    const ns = requireNamespace(call, target);
    requireWritable(ns);
    const statements = readUpdates(options.updates);
    const reply = { n: 0, nModified: 0 };
    const upserted: Doc[] = [];
    const writeErrors: Doc[] = [];
    for (const [index, statement] of statements.entries()) {
      try {
        const id = await runUpdate(call, ns, options, statement, reply);
        if (id !== undefined) upserted.push({ index, _id: id.value });
      } catch (error) {
        if (error instanceof PartlyModified) {
          reply.n += error.result.matched;
          reply.nModified += error.result.changed;
        }
        writeErrors.push(describeWriteError(index, error instanceof PartlyModified ? error.cause : error));
        if (options.ordered) break;
      }
    }
    return {
      ...reply,
      ...(upserted.length === 0 ? {} : { upserted }),
      ...(writeErrors.length === 0 ? {} : { writeErrors }),
    };
  },
});

/** The command as a part of a transaction. */
export function updateInside(call: Call, body: Doc): Inside {
  const options = update.read(body, 'update');
  const ns = requireNamespace(call, body['update']);
  requireWritable(ns);
  const statements = readUpdates(options.updates).map((statement) => ({
    isMulti: statement.multi,
    modification: atOneMoment(readStatement(options, statement)),
  }));
  return (storage) => {
    const reply = { n: 0, nModified: 0 };
    const upserted: Doc[] = [];
    for (const [index, { isMulti, modification }] of statements.entries()) {
      const many = isMulti ? modifyAllInside(storage, ns, modification) : { matched: 0, changed: 0 };
      reply.n += many.matched;
      reply.nModified += many.changed;
      const one =
        many.matched > 0 || (isMulti && !modification.upsert) ? null : modifyOneInside(storage, ns, modification);
      if (one === null) continue;
      reply.n++;
      if (one.before === null) upserted.push({ index, _id: one.upsertedId });
      else if (one.changed) reply.nModified++;
    }
    return upserted.length === 0 ? reply : { ...reply, upserted };
  };
}

/** Reads the parts of a modification that update statements and findAndModify share. */
export function readModification(
  filter: Doc,
  change: unknown,
  { arrayFilters = [], sort, hint, upsert }: Pick<Statement, 'arrayFilters' | 'sort' | 'hint' | 'upsert'>,
  environment?: ExpressionContext,
): Modification {
  if (!isDocument(change) && !Array.isArray(change)) {
    throw failedToParse('Update argument must be either an object or an array');
  }
  if (environment !== undefined && environment.collation !== null) checkCollated(change, arrayFilters);
  return {
    filter,
    query: compileQuery(filter, sort, hint, environment),
    update: compileUpdate(change as Doc | Doc[], {
      arrayFilters: arrayFilters as Doc[],
      ...(environment === undefined ? {} : { environment }),
    }),
    upsert,
  };
}

/** Update operators that compare what they are given, text among it. */
const COMPARING: ReadonlySet<string> = new Set(['$addToSet', '$max', '$min', '$pull', '$pullAll']);

/** Refuses, for an update with a collation, what would have to follow it and does not. */
function checkCollated(change: Doc | readonly unknown[], arrayFilters: readonly unknown[]): void {
  const comparing = Array.isArray(change) ? undefined : Object.keys(change).find((name) => COMPARING.has(name));
  const pushed = Array.isArray(change) ? undefined : (change as Doc)['$push'];
  const sorts = isDocument(pushed) && Object.values(pushed).some((each) => isDocument(each) && '$sort' in each);
  const refused = arrayFilters.length > 0 ? 'arrayFilters' : (comparing ?? (sorts ? '$push with $sort' : null));
  if (refused !== null) {
    throw unsupported(`${refused} is not available together with a collation in this engine`);
  }
}

function readStatement(options: Pick<ReturnType<typeof update.read>, 'let'>, statement: Statement): Modification {
  // Those of the command and, for pipeline updates, those of the statement.
  const given = statement.c === undefined ? options.let : { ...options.let, ...statement.c };
  const variables = readVariables(given, statement.collation);
  const modification = readModification(statement.q, statement.u, statement, variables);
  if (statement.multi) checkMulti(modification.update);
  return modification;
}

async function runUpdate(
  call: Call,
  ns: string,
  options: Pick<ReturnType<typeof update.read>, 'let' | 'maxTimeMS'>,
  statement: Statement,
  reply: { n: number; nModified: number },
): Promise<{ value: unknown } | undefined> {
  const { storage } = call.core;
  const modification = readStatement(options, statement);
  const pace = new Pace(options.maxTimeMS, call.signal);
  if (statement.multi) {
    const many = await modifyMany(storage, ns, modification, pace);
    reply.n += many.matched;
    reply.nModified += many.changed;
    if (!('upsertedId' in many)) return undefined;
    reply.n++;
    return { value: many.upsertedId };
  }
  const one = await modifyOne(storage, ns, modification, pace);
  if (one === null) return undefined;
  reply.n++;
  if (one.before === null) return { value: one.upsertedId };
  if (one.changed) reply.nModified++;
  return undefined;
}
