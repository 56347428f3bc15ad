declare const TYPE: unique symbol;

/**
 * A JSON Schema (2020-12) that carries the TypeScript type `T` of the values it admits. One with a `title` becomes a
 * named component of the API's document; the same title always means the same schema.
 */
export interface Schema<T = unknown> {
  readonly [TYPE]?: T;
  title?: string;
  /** Messages of the contract for broken rules, by keyword; `required` is for a value that is missing or empty. */
  texts?: Readonly<Record<string, string>>;
  [keyword: string]: unknown;
}

/** The type of the values that a schema admits. */
export type TypeOf<S extends Schema> = S extends Schema<infer T> ? T : never;

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
  return {
    ...(title !== undefined && { title }),
    type: 'object',
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(entries.map(([name, schema]) => [name.replace(/\?$/, ''), schema])),
    additionalProperties: false,
  };
}

/** An object with at least these fields: of a body, others are ignored. */
export function openObject<const F extends Fields>(fields: F, title?: string): Schema<ObjectOf<F>> {
  const { additionalProperties: _closed, ...open } = object(fields, title);
  return open;
}

/** An object of which at least one of these fields is sent: the body of a change. */
export function changes<const F extends Fields>(fields: F, title?: string): Schema<Partial<ObjectOf<F>>> {
  const { required: _required, ...open } = object(fields, title);
  return { ...open, minProperties: 1 };
}

/** Keywords beside those that make the type. */
export type Limits = Readonly<Record<string, unknown>>;

export function arrayOf<T>(items: Schema<T>, limits: Limits = {}): Schema<T[]> {
  return { type: 'array', items, ...limits };
}

export function oneOf<const T extends string | number | boolean | null>(...values: readonly T[]): Schema<T> {
  return { enum: [...values] };
}

/** The schema, or null. */
export function orNull<T>(schema: Schema<T>): Schema<T | null> {
  if (schema.title !== undefined || schema.enum !== undefined || typeof schema.type !== 'string') {
    return { anyOf: [schema, { type: 'null' }] };
  }
  return { ...schema, type: [schema.type, 'null'] };
}

/** A value that fits one of the schemas. */
export function anyOf<const S extends readonly Schema[]>(...schemas: S): Schema<TypeOf<S[number]>> {
  return { anyOf: schemas };
}

/**
 * A text within limits such as `{ maxLength: 200 }` (characters), `{ maxBytes: 72 }` (of UTF-8), `{ oneLine: true }`
 * (no control characters) or `{ notBlank: true }` (not only spaces).
 */
export function text(limits: Limits = {}): Schema<string> {
  return { type: 'string', ...limits };
}

export const TEXT: Schema<string> = text();
export const FLAG: Schema<boolean> = { type: 'boolean' };
export const WHOLE: Schema<number> = { type: 'integer', minimum: 0 };
export const MOMENT: Schema<string> = text({ format: 'date-time' });
export const ID: Schema<string> = text({
  title: 'Id',
  pattern: '^[0-9a-f]{24}$',
  examples: ['66f0c0ffee0ddba11c0de001'],
});
export const NULL: Schema<null> = { type: 'null' };
/** An object of any fields. */
export const OBJECT: Schema<Record<string, unknown>> = { type: 'object' };
export const ANYTHING: Schema = {};
