/**
 * A JSON Schema (2020-12). One with a `title` becomes a named component of the document; the same title always means
 * the same schema.
 */
export interface Schema {
  title?: string;
  [keyword: string]: unknown;
}

export interface ParameterDescription {
  description: string;
  schema: Schema;
  required?: boolean;
  /** Stands for any number of query parameters: the properties of an object. */
  isOpen?: boolean;
  /** What every route of a path with this parameter can refuse with because of it. */
  refuses?: Refusals;
}

export type Parameters = Readonly<Record<string, ParameterDescription>>;

/** Codes of refusals by status, as `code` in the body of an error. */
export type Refusals = Readonly<Record<number, readonly string[]>>;

/** Of every route that reads a JSON body. */
export const JSON_REFUSALS: Refusals = {
  400: ['INVALID_JSON', 'INVALID_BODY', 'VALIDATION_FAILED'],
  413: ['BODY_TOO_LARGE', 'TOO_MANY_KEYS'],
};

/** Who may send a request, and how that is shown. */
export interface Access {
  /** For people, one sentence. */
  note: string;
  /** Ways to get in, any of which suffices; each names all the schemes that it needs together. */
  security: readonly (readonly SecurityScheme[])[];
  refuses: Refusals;
}

export interface SecurityScheme {
  name: string;
  definition: Schema;
}

export interface Body {
  description?: string;
  /** false: the request may come without one. */
  required?: boolean;
  /** By media type. */
  content: Readonly<Record<string, Schema>>;
  example?: unknown;
}

export interface Answer {
  description: string;
  /** By media type; absent = no body. */
  content?: Readonly<Record<string, Schema>>;
  /** Texts by header name. */
  headers?: Readonly<Record<string, string>>;
}

/** By status. */
export type Answers = Readonly<Record<number, Answer>>;

export interface RouteDescription {
  /** `operationId`: unique in the whole API. */
  id: string;
  summary: string;
  description?: string;
  access: Access;
  /** Parameters of the path that mean something else here than in the rest of the group. */
  path?: Parameters;
  query?: Parameters;
  headers?: Parameters;
  body?: Body;
  answers: Answers;
  /** Beyond those that access, path, body and limits bring with them. */
  refuses?: Refusals;
}

/** What a feature says about one group of its routes: beside them, in the same order, under the same paths. */
export interface GroupDescription {
  prefix: string;
  tag: string;
  /** What the tag stands for; said by the first group that has it. */
  about?: string;
  /** What the parameters of its paths are that are not just any text. */
  path?: Parameters;
  /** By method and path below the prefix, as the router has them: `GET /:id`. */
  routes: Readonly<Record<string, RouteDescription>>;
}

export const PUBLIC: Access = { note: 'Open to everybody.', security: [], refuses: {} };

const JSON_TYPE = 'application/json';

/** An object with exactly these fields; those whose name ends with `?` may be absent. */
export function object(fields: Readonly<Record<string, Schema>>, title?: string): Schema {
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

/** An object with at least these fields, as `object` takes them: of a body, others are ignored. */
export function openObject(fields: Readonly<Record<string, Schema>>, title?: string): Schema {
  const { additionalProperties: _closed, ...open } = object(fields, title);
  return open;
}

export function arrayOf(items: Schema, limits: Schema = {}): Schema {
  return { type: 'array', items, ...limits };
}

export function oneOf<const T extends string | number | boolean | null>(...values: readonly T[]): Schema {
  return { enum: [...values] };
}

/** The schema, or null. */
export function orNull(schema: Schema): Schema {
  if (schema.title !== undefined || typeof schema.type !== 'string') return { anyOf: [schema, { type: 'null' }] };
  return { ...schema, type: [schema.type, 'null'] };
}

export const TEXT: Schema = { type: 'string' };
export const FLAG: Schema = { type: 'boolean' };
export const WHOLE: Schema = { type: 'integer', minimum: 0 };
export const MOMENT: Schema = { type: 'string', format: 'date-time' };
export const ID: Schema = {
  title: 'Id',
  type: 'string',
  pattern: '^[0-9a-f]{24}$',
  examples: ['66f0c0ffee0ddba11c0de001'],
};
export const ANYTHING: Schema = {};

/** The body of every error reply, as `writeErrors` writes it (decisions.md 1). */
export const ERROR: Schema = object(
  {
    success: { const: false },
    data: { type: 'object', maxProperties: 0 },
    message: { type: 'string', minLength: 1 },
    error: { type: 'string', minLength: 1, description: 'The same text as `message`.' },
    code: { type: 'string', pattern: '^[A-Z][A-Z0-9_]*$', description: 'What went wrong, for programs.' },
    requestId: { type: 'string', description: 'As in the header `x-request-id`; quote it when asking for help.' },
    'details?': {
      type: 'array',
      description: 'Every broken rule of a validation.',
      items: object({ field: TEXT, rule: TEXT, message: TEXT }),
    },
  },
  'Error',
);

/** `{success:true, data, message}` */
export function envelope(data: Schema): Schema {
  return object({ success: { const: true }, data, message: TEXT });
}

/** `{success:true, message}` */
export const DONE: Schema = object({ success: { const: true }, message: TEXT }, 'Done');

/** What lists of operators' routes have in `data`. */
export function listOf(item: Schema): Schema {
  return object({ items: arrayOf(item), total: WHOLE });
}

/** What a page of a list has in `data`. */
export function pageOf(item: Schema): Schema {
  return object({ items: arrayOf(item), total: WHOLE, page: WHOLE, limit: WHOLE });
}

/** As `readWhole` reads it from a query. */
export function wholeNumber(fallback: number): Schema {
  return { type: 'integer', minimum: 1, maximum: 999_999_999, default: fallback };
}

export function jsonBody(schema: Schema, example?: unknown): Body {
  return { content: { [JSON_TYPE]: schema }, ...(example !== undefined && { example }) };
}

/** The same body, which may be left out. */
export function optional(body: Body): Body {
  return { ...body, required: false };
}

export function jsonAnswer(description: string, schema: Schema, headers?: Answer['headers']): Answer {
  return { description, content: { [JSON_TYPE]: schema }, ...(headers && { headers }) };
}

/** 200 `{success:true, data, message}` */
export function ok(description: string, data: Schema): Answers {
  return { 200: jsonAnswer(description, envelope(data)) };
}

/** 201 `{success:true, data, message}` */
export function created(description: string, data: Schema): Answers {
  return { 201: jsonAnswer(description, envelope(data)) };
}

/** 200 `{success:true, message}` */
export function done(description: string): Answers {
  return { 200: jsonAnswer(description, DONE) };
}

/** A part of a path that names something; 404 with the code `unknown` for what nothing is named. */
export function naming(description: string, unknown: string, schema: Schema = TEXT): ParameterDescription {
  return { description, schema, refuses: { 404: [unknown] } };
}

export function parameter(description: string, schema: Schema, required = false): ParameterDescription {
  return { description, schema, required };
}

/** A boolean of a query string. */
export function flag(description: string): ParameterDescription {
  return parameter(description, { type: 'boolean', default: false });
}
