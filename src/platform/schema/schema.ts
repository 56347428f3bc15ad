declare const TYPE: unique symbol;

/** A JSON Schema (2020-12) of which no type is known. */
export interface JsonSchema extends Annotations {
  [keyword: string]: unknown;
}

/** Keywords that stand beside those of any type. */
export interface Annotations {
  /** Makes the schema a named component of the API's document; the same title always means the same schema. */
  title?: string;
  description?: string;
  default?: unknown;
  deprecated?: true;
  examples?: readonly unknown[];
  /** Messages of the contract for broken rules, by keyword; `required` is for a value that is missing or empty. */
  texts?: Readonly<Record<string, string>>;
}

/**
 * A JSON Schema that carries the TypeScript type `T` of the values it admits. Only the constructors below make one
 * (decision 53): a literal has no type that it could be wrong about.
 */
export interface Schema<T = unknown> extends JsonSchema {
  readonly [TYPE]: T;
}

/**
 * A schema whose type the compiler cannot know, such as that of stored documents: the caller claims that it
 * admits `T` and nothing else.
 */
export const claimed = <T>(schema: JsonSchema): Schema<T> => schema as Schema<T>;

/** The type of the values that a schema admits. */
export type TypeOf<S extends Schema> = S[typeof TYPE];

/** Schemas by the name of their field; those whose name ends with `?` may be absent. */
export type Fields = Readonly<Record<string, Schema>>;

type OptionalName<Name> = Name extends `${infer Bare}?` ? Bare : never;

/** The object with these fields. */
export type ObjectOf<F extends Fields> = Simplify<
  { [Name in keyof F as Name extends `${string}?` ? never : Name]: TypeOf<F[Name]> } & {
    [Name in keyof F as OptionalName<Name>]?: TypeOf<F[Name]>;
  }
>;

type Simplify<T> = { -readonly [Name in keyof T]: T[Name] };

/** An object with exactly these fields. */
export function object<const F extends Fields>(fields: F, title?: string): Schema<ObjectOf<F>> {
  const entries = Object.entries(fields);
  const required = entries.map(([name]) => name).filter((name) => !name.endsWith('?'));
  return claimed({
    ...(title !== undefined && { title }),
    type: 'object',
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(entries.map(([name, schema]) => [name.replace(/\?$/, ''), schema])),
    additionalProperties: false,
  });
}

/** An object with at least these fields: of a body, others are ignored. */
export function openObject<const F extends Fields>(fields: F, title?: string): Schema<ObjectOf<F>> {
  const { additionalProperties: _closed, ...open } = object(fields, title);
  return claimed(open);
}

/** An object of which at least one of these fields is sent: the body of a change. */
export function changes<const F extends Fields>(fields: F, title?: string): Schema<Partial<ObjectOf<F>>> {
  const { required: _required, ...open } = object(fields, title);
  return claimed({ ...open, minProperties: 1 });
}

interface ListLimits extends Annotations {
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
}

export function arrayOf<T>(items: Schema<T>, limits: ListLimits = {}): Schema<T[]> {
  return claimed({ type: 'array', items, ...limits });
}

/** An object with any names, the values of which fit the schema. */
export function mapOf<T>(
  values: Schema<T>,
  limits: Annotations & { maxProperties?: number } = {},
): Schema<Record<string, T>> {
  return claimed({ type: 'object', additionalProperties: values, ...limits });
}

export function oneOf<const T extends string | number | boolean | null>(...values: readonly T[]): Schema<T> {
  return claimed({ enum: [...values] });
}

/** This value and no other. */
export function literal<const T extends string | number | boolean>(value: T): Schema<T> {
  return claimed({ const: value });
}

/** The schema, or null. */
export function orNull<T>(schema: Schema<T>): Schema<T | null> {
  if (schema.title !== undefined || schema.enum !== undefined || typeof schema.type !== 'string') {
    return claimed({ anyOf: [schema, { type: 'null' }] });
  }
  return claimed({ ...schema, type: [schema.type, 'null'] });
}

/** A value that fits one of the schemas. */
export function anyOf<const S extends readonly Schema[]>(...schemas: S): Schema<TypeOf<S[number]>> {
  return claimed({ anyOf: schemas });
}

/** The schema of a value that is `fallback` where it is left out. */
export function withDefault<S extends Schema>(schema: S, fallback: TypeOf<S>): S & { default: TypeOf<S> } {
  return { ...schema, default: fallback };
}

interface TextLimits extends Annotations {
  /** Characters. */
  minLength?: number;
  maxLength?: number;
  /** Bytes of UTF-8, counted as those of a password. */
  minBytes?: number;
  maxBytes?: number;
  pattern?: string;
  format?: string;
  contentMediaType?: string;
  /** No control characters. */
  oneLine?: true;
  /** Not only spaces. */
  notBlank?: true;
  wellFormed?: true;
}

export function text(limits: TextLimits = {}): Schema<string> {
  return claimed({ type: 'string', ...limits });
}

interface NumberLimits extends Annotations {
  minimum?: number;
  maximum?: number;
}

export function number(limits: NumberLimits = {}): Schema<number> {
  return claimed({ type: 'number', ...limits });
}

/** A whole number. */
export function integer(limits: NumberLimits = {}): Schema<number> {
  return claimed({ type: 'integer', ...limits });
}

export function boolean(annotations: Annotations = {}): Schema<boolean> {
  return claimed({ type: 'boolean', ...annotations });
}

export const TEXT = text();
export const FLAG = boolean();
export const WHOLE = integer({ minimum: 0 });
export const MOMENT = text({ format: 'date-time' });
export const ID = text({ title: 'Id', pattern: '^[0-9a-f]{24}$', examples: ['66f0c0ffee0ddba11c0de001'] });
export const NULL: Schema<null> = claimed({ type: 'null' });
/** An object of any fields. */
export const OBJECT: Schema<Record<string, unknown>> = claimed({ type: 'object' });
export const ANYTHING: Schema = claimed({});
