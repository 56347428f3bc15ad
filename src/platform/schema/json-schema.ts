import type * as ajvModule from 'ajv';
import type { Ajv, ErrorObject, SchemaObject } from 'ajv';
import { invalid } from '../../errors.js';
import { lazyRequire } from '../lazy-require.js';

const ajv = lazyRequire<typeof ajvModule>('ajv');
let compiler: Ajv | undefined;

/** Answers the value as `T` or throws a 400 that names the first place that does not fit the schema. */
export interface Reader<T> {
  (value: unknown): T;
  /** The checked schema, shown in the API's document. */
  readonly schema: SchemaObject;
}

/** Makes the reader of a request body. */
export function compileReader<T>(schema: SchemaObject): Reader<T> {
  let fits: ReturnType<Ajv['compile']> | undefined;
  const read = (value: unknown): T => {
    // Compiling takes milliseconds, so it waits for the first use: commands that never need it start faster.
    fits ??= openCompiler().compile(schema);
    if (!fits(value)) throw describe(fits.errors![0]!);
    return value as T;
  };
  return Object.assign(read, { schema });
}

/** One for all schemas: each would bring its own copy of what JSON Schema itself consists of. */
function openCompiler(): Ajv {
  return (compiler ??= new (ajv().Ajv)({ ownProperties: true, strict: true, allowUnionTypes: true, verbose: true }));
}

function describe(error: ErrorObject): Error {
  const place = error.instancePath.slice(1).replaceAll('/', '.') || 'body';
  const message = `${place} ${whatIsWrong(error)}`;
  return invalid('INVALID_BODY', message, { details: [{ field: place, rule: error.keyword, message }] });
}

function whatIsWrong({ keyword, params, message, parentSchema }: ErrorObject): string {
  if (keyword === 'additionalProperties') {
    const known = Object.keys((parentSchema?.properties as object | undefined) ?? {}).join(', ');
    return `must not contain "${String(params.additionalProperty).slice(0, 100)}"${known && `: it may have ${known}`}`;
  }
  if (keyword === 'enum') return `must be one of ${(params.allowedValues as unknown[]).join(', ')}`;
  if (keyword === 'required') return `must have "${String(params.missingProperty)}"`;
  return message ?? 'is not valid';
}
