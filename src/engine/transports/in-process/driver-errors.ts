import { createRequire } from 'node:module';
import type { MongoBulkWriteError, MongoInvalidArgumentError, MongoServerError } from 'mongodb';
import { BsonFormatError } from '../../codec/elements.js';
import type { Doc } from '../../codec/document.js';
import { toApp } from '../../codec/app-values.js';
import { BsonValueError } from '../../codec/encode.js';
import { EngineError } from '../../errors.js';

interface ErrorModule {
  MongoServerError: new (reply: Doc) => MongoServerError;
  MongoInvalidArgumentError: new (message: string) => MongoInvalidArgumentError;
}

interface BulkModule {
  MongoBulkWriteError: new (error: Doc, result: unknown) => MongoBulkWriteError;
  WriteError: new (error: Doc) => unknown;
}

const require = createRequire(import.meta.url);
let errors: ErrorModule | undefined;
let bulk: BulkModule | undefined;

/**
 * The driver's own error classes, loaded when the first error happens: the whole driver would take 80 ms of a start.
 */
function errorClasses(): ErrorModule {
  errors ??= require('mongodb/lib/error.js') as ErrorModule;
  return errors;
}

function bulkClasses(): BulkModule {
  bulk ??= require('mongodb/lib/bulk/common.js') as BulkModule;
  return bulk;
}

/** The driver's MongoServerError for a refusal of the engine; anything else unchanged. */
export function toDriverError(error: unknown): unknown {
  if (error instanceof EngineError) {
    const { code, codeName, message, extra } = error;
    return serverError({ ok: 0, errmsg: message, code, codeName, ...extra });
  }
  if (error instanceof BsonFormatError || error instanceof BsonValueError) return invalidArgument(error.message);
  return error;
}

/** The driver's MongoServerError for a reply or a write error. */
export function serverError(reply: Doc): MongoServerError {
  return new (errorClasses().MongoServerError)(toApp(reply) as Doc);
}

/** The driver's error for a call with arguments that it would refuse before sending anything. */
export function invalidArgument(message: string): MongoInvalidArgumentError {
  return new (errorClasses().MongoInvalidArgumentError)(message);
}

/** One refused operation of a bulk, as the driver wraps it. */
export function bulkItemError(error: Doc, op: unknown): unknown {
  return new (bulkClasses().WriteError)({
    index: error['index'],
    code: error['code'],
    errmsg: error['errmsg'],
    errInfo: error['errInfo'],
    op,
  });
}

/** The driver's error for a bulk of which some operations were refused. */
export function bulkError(message: string, code: number, writeErrors: unknown[], result: unknown): MongoBulkWriteError {
  return new (bulkClasses().MongoBulkWriteError)({ message, code, writeErrors }, result);
}
