import type * as ajvModule from 'ajv';
import type { Ajv, ErrorObject } from 'ajv';
import { invalid, type FieldProblem } from '../../errors.js';
import { lazyRequire } from '../lazy-require.js';
import type { Schema } from './schema.js';
import { isEmailAddress, isOneLine, passwordBytes } from './text-forms.js';

const ajv = lazyRequire<typeof ajvModule>('ajv');

/**
 * Returns the value as `T`, or throws 400 VALIDATION_FAILED that names each field that does not fit; the first alone
 * where the schema has lists.
 */
export type Check<T> = (value: unknown) => T;

/** The check of a schema, compiled at its first use: commands that never need it start faster. */
export function compileCheck<T>(schema: Schema<T>): Check<T> {
  let fits: ReturnType<Ajv['compile']> | undefined;
  return (value) => {
    fits ??= openCompiler(!hasLists(schema)).compile(schema);
    if (fits(value)) return value as T;
    const details = fits.errors!.map(describe);
    const message = ownText(fits.errors![0]!) ?? `Validation failed: ${details[0]!.message}`;
    throw invalid('VALIDATION_FAILED', message, { details });
  };
}

const compilers = new Map<boolean, Ajv>();

/** One for all schemas: each would bring its own copy of what JSON Schema itself consists of. */
function openCompiler(allErrors: boolean): Ajv {
  const known = compilers.get(allErrors);
  if (known) return known;
  const options = { ownProperties: true, strict: true, allowUnionTypes: true, verbose: true };
  const compiler = new (ajv().Ajv)({ ...options, allErrors });
  compiler.addKeyword({
    keyword: 'maxBytes',
    type: 'string',
    validate: (max: number, value: string) => passwordBytes(value) <= max,
  });
  compiler.addKeyword({
    keyword: 'minBytes',
    type: 'string',
    validate: (min: number, value: string) => passwordBytes(value) >= min,
  });
  addTextRule(compiler, 'oneLine', isOneLine);
  addTextRule(compiler, 'notBlank', (value) => value.trim() !== '');
  compiler.addVocabulary(['texts']);
  addTextRule(compiler, 'wellFormed', (value) => !HALF_A_CHARACTER.test(value));
  compiler.addFormat('date-time', true);
  compiler.addFormat('email', isEmailAddress);
  compilers.set(allErrors, compiler);
  return compiler;
}

/** A keyword of ours that is `true` for texts that must pass the test. */
function addTextRule(compiler: Ajv, keyword: string, passes: (value: string) => boolean): void {
  const validate = (wanted: boolean, value: string): boolean => !wanted || passes(value);
  compiler.addKeyword({ keyword, type: 'string', schemaType: 'boolean', validate });
}

/** Half a surrogate pair. */
const HALF_A_CHARACTER = /\p{Surrogate}/u;

/** Reporting every problem of a list would take as long as the list is. */
function hasLists(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  return 'items' in schema || '$ref' in schema || Object.values(schema).some(hasLists);
}

function describe(error: ErrorObject): FieldProblem {
  const missing = error.keyword === 'required' ? `/${String(error.params.missingProperty)}` : '';
  const field = (error.instancePath + missing).slice(1).replaceAll('/', '.') || 'body';
  const rule = isAbsent(error) ? 'required' : (RULES[error.keyword] ?? error.keyword);
  return { field, rule, message: `${field} ${isAbsent(error) ? 'is required' : problemOf(error)}` };
}

const RULES: Readonly<Record<string, string>> = {
  minLength: 'length',
  maxLength: 'length',
  minBytes: 'length',
  maxBytes: 'length',
};

/** Null and an empty text stand for a value that was not given, unless the schema admits them. */
function isAbsent({ keyword, data }: ErrorObject): boolean {
  if (data === '' && EMPTY_RULES.has(keyword)) return true;
  return keyword === 'required' || keyword === 'notBlank' || (data === null && keyword === 'type');
}

const EMPTY_RULES: ReadonlySet<string> = new Set(['minLength', 'minBytes']);

/** The message that the schema has for this broken rule (`texts`), instead of one made from the rule. */
function ownText(error: ErrorObject): string | undefined {
  const { keyword, params, parentSchema } = error;
  const fields = parentSchema?.properties as Record<string, Schema> | undefined;
  const schema = keyword === 'required' ? fields?.[String(params.missingProperty)] : (parentSchema as Schema);
  return schema?.texts?.[isAbsent(error) ? 'required' : keyword];
}

function problemOf({ keyword, params, message, parentSchema }: ErrorObject): string {
  const limit = parentSchema?.[keyword] as unknown;
  switch (keyword) {
    case 'additionalProperties': {
      const known = Object.keys((parentSchema?.properties as object | undefined) ?? {}).join(', ');
      const unknown = String(params.additionalProperty).slice(0, 100);
      return `must not contain "${unknown}"${known && `: it may have ${known}`}`;
    }
    case 'enum':
      return `must be one of ${(limit as unknown[]).join(', ')}`;
    case 'const':
      return `must be ${String(limit)}`;
    case 'type':
      return `must be ${[limit].flat().map(nameOf).join(' or ')}`;
    case 'minLength':
    case 'maxLength':
      return `must have at ${keyword === 'minLength' ? 'least' : 'most'} ${String(limit)} characters`;
    case 'minBytes':
    case 'maxBytes':
      return `must have at ${keyword === 'minBytes' ? 'least' : 'most'} ${String(limit)} bytes`;
    case 'oneLine':
      return 'must be one line of text';
    case 'format':
      return limit === 'email' ? 'must be an e-mail address' : `must be a ${String(limit)}`;
    case 'wellFormed':
      return 'must not contain half a surrogate pair, which is not a character';
    case 'minItems':
    case 'maxItems':
      return `must have ${keyword === 'minItems' ? 'at least' : 'at most'} ${String(limit)} items`;
    case 'minProperties':
      return 'must have at least one field';
    default:
      return message ?? 'is not valid';
  }
}

/** A type as `Validation failed: <field> must be a <Type>` says it (decisions.md 3). */
function nameOf(type: unknown): string {
  const name = String(type);
  if (name === 'null') return name;
  if (name === 'integer') return 'a whole Number';
  return `${/^[ao]/.test(name) ? 'an' : 'a'} ${name[0]!.toUpperCase()}${name.slice(1)}`;
}
