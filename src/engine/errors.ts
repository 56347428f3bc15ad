/** MongoDB's error codes that have a name and that the engine answers with. */
export const CODES = {
  InternalError: 1,
  BadValue: 2,
  FailedToParse: 9,
  TypeMismatch: 14,
  Overflow: 15,
  InvalidLength: 16,
  ProtocolError: 17,
  AuthenticationFailed: 18,
  IllegalOperation: 20,
  InvalidBSON: 22,
  NamespaceNotFound: 26,
  IndexNotFound: 27,
  PathNotViable: 28,
  ConflictingUpdateOperators: 40,
  CursorNotFound: 43,
  NamespaceExists: 48,
  MaxTimeMSExpired: 50,
  DollarPrefixedFieldName: 52,
  InvalidIdField: 53,
  NotSingleValueField: 54,
  EmptyFieldName: 56,
  CommandNotFound: 59,
  ImmutableField: 66,
  CannotCreateIndex: 67,
  InvalidOptions: 72,
  InvalidNamespace: 73,
  NoReplicationEnabled: 76,
  IndexOptionsConflict: 85,
  IndexKeySpecsConflict: 86,
  OperationFailed: 96,
  WriteConflict: 112,
  CommandNotSupported: 115,
  ExceededMemoryLimit: 146,
  InvalidPipelineOperator: 168,
  CannotIndexParallelArrays: 171,
  QueryPlanKilled: 175,
  InvalidIndexSpecificationOption: 197,
  MaxSubPipelineDepthExceeded: 232,
  ConversionFailure: 241,
  NoSuchTransaction: 251,
  TransactionTooLarge: 257,
  OperationNotSupportedInTransaction: 263,
  NoQueryExecutionPlans: 291,
  QueryExceededMemoryLimitNoDiskUseAllowed: 292,
  DataCorruptionDetected: 326,
  UnsupportedOpQueryCommand: 352,
  TemporarilyUnavailable: 365,
  BSONObjectTooLarge: 10334,
  DuplicateKey: 11000,
  Interrupted: 11601,
  CursorInUse: 12051,
  OutOfDiskSpace: 14031,
  IDLFailedToParse: 40414,
  IDLUnknownField: 40415,
} as const;

const CODE_NAMES = new Map<number, string>(Object.entries(CODES).map(([name, code]) => [code, name]));

/** The name MongoDB gives to an error code: `Location<code>` where it has none. */
export function codeNameOf(code: number): string {
  return CODE_NAMES.get(code) ?? `Location${String(code)}`;
}

/**
 * A refusal with MongoDB's code. `extra` holds further fields of the error document (`keyPattern`, `keyValue`, ...).
 */
export class EngineError extends Error {
  readonly code: number;
  readonly codeName: string;
  readonly extra: Readonly<Record<string, unknown>> | undefined;

  constructor(code: number, message: string, extra?: Readonly<Record<string, unknown>>) {
    super(message);
    this.name = 'EngineError';
    this.code = code;
    this.codeName = codeNameOf(code);
    this.extra = extra;
  }
}

/** An error with one of the codes to which MongoDB gives no name; those with a name are in `CODES`. */
export function refusal(code: number, message: string): EngineError {
  return new EngineError(code, message);
}

function refusalOf(code: number): (message: string) => EngineError {
  return (message) => new EngineError(code, message);
}

/** MongoDB's 2: a value that an operator or option cannot take. */
export const badValue = refusalOf(CODES.BadValue);
/** MongoDB's 9: a statement of the wrong form. */
export const failedToParse = refusalOf(CODES.FailedToParse);
/** MongoDB's 14: a value of the wrong type. */
export const typeMismatch = refusalOf(CODES.TypeMismatch);
/** MongoDB's 28: a path through something that is neither document nor array. */
export const pathNotViable = refusalOf(CODES.PathNotViable);
/** MongoDB's 40: two changes of one path, or of one path and what is inside it. */
export const conflictingUpdate = refusalOf(CODES.ConflictingUpdateOperators);
/** MongoDB's 66: a change of `_id`. */
export const immutableField = refusalOf(CODES.ImmutableField);
/** MongoDB's 115: an ability of MongoDB that the engine does not have. */
export const unsupported = refusalOf(CODES.CommandNotSupported);
/** MongoDB's 67: an index specification that is refused. */
export const cannotCreateIndex = refusalOf(CODES.CannotCreateIndex);
