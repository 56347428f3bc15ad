/**
 * MongoDB's error codes that the engine answers with, by name; other codes are reported as `Location<code>`, as MongoDB
 * does.
 */
const CODE_NAMES: Readonly<Record<number, string>> = {
  1: 'InternalError',
  2: 'BadValue',
  9: 'FailedToParse',
  14: 'TypeMismatch',
  15: 'Overflow',
  16: 'InvalidLength',
  17: 'ProtocolError',
  20: 'IllegalOperation',
  22: 'InvalidBSON',
  26: 'NamespaceNotFound',
  27: 'IndexNotFound',
  28: 'PathNotViable',
  40: 'ConflictingUpdateOperators',
  43: 'CursorNotFound',
  48: 'NamespaceExists',
  50: 'MaxTimeMSExpired',
  52: 'DollarPrefixedFieldName',
  53: 'InvalidIdField',
  54: 'NotSingleValueField',
  56: 'EmptyFieldName',
  59: 'CommandNotFound',
  66: 'ImmutableField',
  67: 'CannotCreateIndex',
  72: 'InvalidOptions',
  73: 'InvalidNamespace',
  85: 'IndexOptionsConflict',
  86: 'IndexKeySpecsConflict',
  115: 'CommandNotSupported',
  146: 'ExceededMemoryLimit',
  168: 'InvalidPipelineOperator',
  171: 'CannotIndexParallelArrays',
  175: 'QueryPlanKilled',
  197: 'InvalidIndexSpecificationOption',
  232: 'MaxSubPipelineDepthExceeded',
  241: 'ConversionFailure',
  292: 'QueryExceededMemoryLimitNoDiskUseAllowed',
  326: 'DataCorruptionDetected',
  352: 'UnsupportedOpQueryCommand',
  365: 'TemporarilyUnavailable',
  10334: 'BSONObjectTooLarge',
  11000: 'DuplicateKey',
  11601: 'Interrupted',
  12051: 'CursorInUse',
  14031: 'OutOfDiskSpace',
  40414: 'IDLFailedToParse',
  40415: 'IDLUnknownField',
};

/** The name MongoDB gives to an error code. */
export function codeNameOf(code: number): string {
  return CODE_NAMES[code] ?? `Location${String(code)}`;
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

/** An error with any code; the named ones below are for the codes that many places use. */
export function refusal(code: number, message: string): EngineError {
  return new EngineError(code, message);
}

export function badValue(message: string): EngineError {
  return new EngineError(2, message);
}

export function failedToParse(message: string): EngineError {
  return new EngineError(9, message);
}

export function typeMismatch(message: string): EngineError {
  return new EngineError(14, message);
}

export function pathNotViable(message: string): EngineError {
  return new EngineError(28, message);
}

export function conflictingUpdate(message: string): EngineError {
  return new EngineError(40, message);
}

export function immutableField(message: string): EngineError {
  return new EngineError(66, message);
}

export function unsupported(message: string): EngineError {
  return new EngineError(115, message);
}
