/** MongoDB's error codes that the engine answers with, by name; other codes are reported as `Location<code>`, as MongoDB does. */
const CODE_NAMES: Readonly<Record<number, string>> = {
  1: 'InternalError',
  2: 'BadValue',
  8: 'UnknownError',
  9: 'FailedToParse',
  11: 'UserNotFound',
  13: 'Unauthorized',
  14: 'TypeMismatch',
  15: 'Overflow',
  17: 'ProtocolError',
  20: 'IllegalOperation',
  26: 'NamespaceNotFound',
  27: 'IndexNotFound',
  28: 'PathNotViable',
  31: 'RoleNotFound',
  40: 'ConflictingUpdateOperators',
  43: 'CursorNotFound',
  48: 'NamespaceExists',
  50: 'MaxTimeMSExpired',
  52: 'DollarPrefixedFieldName',
  53: 'InvalidIdField',
  54: 'NotSingleValueField',
  55: 'InvalidDBRef',
  56: 'EmptyFieldName',
  57: 'DottedFieldName',
  59: 'CommandNotFound',
  66: 'ImmutableField',
  67: 'CannotCreateIndex',
  68: 'IndexAlreadyExists',
  72: 'InvalidOptions',
  73: 'InvalidNamespace',
  85: 'IndexOptionsConflict',
  86: 'IndexKeySpecsConflict',
  89: 'NetworkTimeout',
  96: 'OperationFailed',
  112: 'WriteConflict',
  115: 'CommandNotSupported',
  121: 'DocumentValidationFailure',
  125: 'CommandFailed',
  136: 'CappedPositionLost',
  139: 'JSInterpreterFailure',
  146: 'ExceededMemoryLimit',
  165: 'ViewDepthLimitExceeded',
  166: 'CommandNotSupportedOnView',
  168: 'InvalidPipelineOperator',
  171: 'CannotIndexParallelArrays',
  197: 'InvalidIndexSpecificationOption',
  224: 'QueryFeatureNotAllowed',
  241: 'ConversionFailure',
  251: 'NoSuchTransaction',
  263: 'OperationNotSupportedInTransaction',
  285: 'ShutdownInProgress',
  292: 'QueryExceededMemoryLimitNoDiskUseAllowed',
  10334: 'BSONObjectTooLarge',
  11000: 'DuplicateKey',
  11601: 'Interrupted',
  14031: 'OutOfDiskSpace',
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
