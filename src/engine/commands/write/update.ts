import { type Doc, isDocument } from '../../codec/document.js';
import { CODES, EngineError, failedToParse, typeMismatch } from '../../errors.js';
import type { ExpressionContext } from '../../query/expression.js';
import { compileUpdate } from '../../query/update/update.js';
import {
  type Call,
  checkCollation,
  type Command,
  readWriteBatch,
  readCount,
  readDoc,
  readFlagOption,
  requireNamespace,
} from '../command.js';
import { checkMulti, type Modification, modifyMany, modifyOne, PartlyModified } from './modify.js';
import { requireWritable } from '../namespaces.js';
import { Pace } from '../pace.js';
import { compileQuery } from '../read/query.js';
import { readVariables } from '../read/variables.js';
import { describeWriteError } from './write-errors.js';

const STATEMENT_FIELDS = new Set([
  'q',
  'u',
  'c',
  'multi',
  'upsert',
  'arrayFilters',
  'hint',
  'collation',
  'upsertSupplied',
  'sort',
]);

export const update: Command = {
  fields: ['updates', 'ordered', 'bypassDocumentValidation', 'let'],
  async run(call, body) {
    const ns = requireNamespace(call, body['update']);
    requireWritable(ns);
    const statements = readStatements(body, 'updates');
    const ordered = readFlagOption(body, 'ordered', true);
    const reply = { n: 0, nModified: 0 };
    const upserted: Doc[] = [];
    const writeErrors: Doc[] = [];
    for (const [index, statement] of statements.entries()) {
      try {
        const id = await runUpdate(call, ns, body, statement, reply);
        if (id !== undefined) upserted.push({ index, _id: id.value });
      } catch (error) {
        if (error instanceof PartlyModified) {
          reply.n += error.result.matched;
          reply.nModified += error.result.changed;
        }
        writeErrors.push(describeWriteError(index, error instanceof PartlyModified ? error.cause : error));
        if (ordered) break;
      }
    }
    return {
      ...reply,
      ...(upserted.length === 0 ? {} : { upserted }),
      ...(writeErrors.length === 0 ? {} : { writeErrors }),
    };
  },
};

/** The list of statements of a write command; refuses unknown fields in them. */
export function readStatements(
  body: Doc,
  name: string,
  fields: ReadonlySet<string> = STATEMENT_FIELDS,
): readonly Doc[] {
  const statements = readWriteBatch(body, name);
  for (const statement of statements) {
    if (!isDocument(statement)) throw typeMismatch(`BSON field '${name}' must contain documents`);
    for (const field of Object.keys(statement)) {
      if (!fields.has(field)) {
        throw new EngineError(CODES.IDLUnknownField, `BSON field '${name}.${field}' is an unknown field.`);
      }
    }
  }
  return statements as readonly Doc[];
}

/** Reads the parts of a modification that update statements and findAndModify share. */
export function readModification(
  filter: Doc,
  change: unknown,
  options: Doc,
  upsert: boolean,
  environment?: ExpressionContext,
): Modification {
  checkCollation(options);
  const arrayFilters = options['arrayFilters'];
  if (arrayFilters !== undefined && arrayFilters !== null && !Array.isArray(arrayFilters)) {
    throw typeMismatch("BSON field 'arrayFilters' must be an array");
  }
  if (!isDocument(change) && !Array.isArray(change)) {
    throw failedToParse('Update argument must be either an object or an array');
  }
  return {
    filter,
    query: compileQuery(filter, readDoc(options, 'sort'), options['hint'], environment),
    update: compileUpdate(change as Doc | Doc[], {
      arrayFilters: (arrayFilters as Doc[] | undefined) ?? [],
      ...(environment === undefined ? {} : { environment }),
    }),
    upsert,
  };
}

/** The variables of the command and, for pipeline updates, those of the statement. */
function updateVariables(body: Doc, statement: Doc): ExpressionContext | undefined {
  if (statement['c'] === undefined) return readVariables(body);
  return readVariables({ let: { ...readDoc(body, 'let'), ...readDoc(statement, 'c') } });
}

async function runUpdate(
  call: Call,
  ns: string,
  body: Doc,
  statement: Doc,
  reply: { n: number; nModified: number },
): Promise<{ value: unknown } | undefined> {
  const { storage } = call.core;
  const upsert = readFlagOption(statement, 'upsert');
  const modification = readModification(
    readDoc(statement, 'q'),
    statement['u'],
    statement,
    upsert,
    updateVariables(body, statement),
  );
  const pace = new Pace(readCount(body, 'maxTimeMS'), call.signal);
  if (readFlagOption(statement, 'multi')) {
    checkMulti(modification.update);
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
