import type { Context } from 'koa';
import type { App } from '../../app.js';
import type { BodySize } from '../requests/read-body.js';
import type { LargeReply, StreamReply, WrittenReply } from '../replies/reply.js';
import {
  arrayOf,
  FLAG,
  integer,
  type JsonSchema,
  literal,
  object,
  oneOf,
  type Schema,
  text,
  TEXT,
  type TypeOf,
  WHOLE,
  withDefault,
} from '../../platform/schema/schema.js';

/** Codes of refusals by status, as `code` in the body of an error. */
export type RouteErrors = Readonly<Record<number, readonly string[]>>;

/** Of every route that reads a JSON body. */
export const JSON_ERRORS: RouteErrors = {
  400: ['INVALID_JSON', 'INVALID_BODY', 'VALIDATION_FAILED'],
  408: ['REQUEST_TIMEOUT'],
  413: ['BODY_TOO_LARGE', 'TOO_MANY_VALUES', 'TOO_MANY_KEYS'],
};

export interface SecurityScheme {
  name: string;
  definition: JsonSchema;
}

/** A request on its way to a handler. */
export type RouteContext = Context & { params: Record<string, string> };

/**
 * Which limits a request counts against (rest-api.md 8): none · that of public pages and files · that of its
 * sender · also that of sign-ins · also that of refreshed sessions · that of operators · that of own addresses.
 */
export type RateClass = 'free' | 'page' | 'plain' | 'run' | 'sign-in' | 'refresh' | 'operator';

/** Where a request's project key stands, whose project may have limits of its own. */
export type KeyPlace = 'header' | 'query';

/** Who may send a request: the check, what it hands to the handler, and how both are documented. */
export interface Access<Given extends object = object> {
  /** For people, one sentence. */
  note: string;
  /** Ways to get in, any of which suffices; each names all the schemes that it needs together. */
  security: readonly (readonly SecurityScheme[])[];
  errors: RouteErrors;
  /** Absent where no key is looked for: it must not choose the limit then. */
  keyIn?: KeyPlace;
  /** The words under which each request is recorded in the audit log; absent where none is. */
  action?: string;
  /**
   * Lets the request in or throws, before anything else of the request is looked at. A promise only when it takes time:
   * the fast routes wait for nothing.
   */
  admit?(app: App, ctx: RouteContext): Promise<void> | null;
  /** Runs the rest of the request, for example inside an audit entry; the JSON body has been parsed by then. */
  around?(app: App, ctx: RouteContext, run: () => Promise<void>): Promise<void>;
  /** The values that handlers get by name beside `params`, `query` and `body`. */
  give?: (app: App, ctx: RouteContext) => Promise<Given> | Given;
  /** The JSON body is parsed even where the route describes none. */
  readsBody?: boolean;
}

/** No authentication. */
export const PUBLIC: Access = { note: 'No authentication.', security: [], errors: {} };

/** A parameter of the path, the query or the headers. */
export interface Parameter<T = unknown> {
  description: string;
  schema: Schema<T>;
  required?: boolean;
  /** A larger number counts as this one. */
  cap?: number;
  /** Stands for any number of query parameters: the properties of an object. The handler reads them itself. */
  isOpen?: boolean;
  /** Errors that every route with this parameter has because of it. */
  errors?: RouteErrors;
}

export type Parameters = Readonly<Record<string, Parameter>>;

/** A body that is not JSON alone: bytes, forms. */
export interface OwnBody {
  description?: string;
  /** By media type. */
  content: Readonly<Record<string, JsonSchema>>;
  required?: boolean;
  example?: unknown;
  /** The handler reads it by `Admission.read`, after it has looked at what the headers say. */
  isRead?: boolean;
}

/** A reply of a route. `kind` says how the value that a handler returns becomes its body. */
export interface Answer<T = unknown> {
  status: number;
  /** Stands for whatever other status a reply has, too. */
  isAny?: true;
  description: string;
  /** By media type; absent = no body. */
  content?: Readonly<Record<string, JsonSchema>>;
  headers?: Readonly<Record<string, string>>;
  /**
   * data: in the envelope · done: the envelope without data · plain: as it is · encoded: JSON text that is UTF-8 in
   * `latin1` already, or parts of it, or a stream of events · own: the handler replies itself
   */
  kind: 'data' | 'done' | 'plain' | 'encoded' | 'own';
  readonly returns?: T;
}

export const JSON_TYPE = 'application/json';

const data =
  (status: number) =>
  <T>(schema: Schema<T>, message: string): Answer<T> => ({
    status,
    description: message,
    content: { [JSON_TYPE]: envelope(schema) },
    kind: 'data',
  });

/** 200 `{success:true, data, message}` */
export const ok = data(200);
/** 201 `{success:true, data, message}` */
export const created = data(201);
/** 202 `{success:true, data, message}` */
export const accepted = data(202);

/** 200 `{success:true, message}` */
export function done(message: string): Answer<void> {
  return { status: 200, description: message, content: { [JSON_TYPE]: DONE }, kind: 'done' };
}

/** The value that the handler returns, without an envelope. */
export function plain<T>(schema: Schema<T>, description: string, status = 200): Answer<T> {
  return { status, description, content: { [JSON_TYPE]: schema }, kind: 'plain' };
}

/** JSON that the store has encoded already, or does when it is sent (`replyEncoded`). */
export function encoded(schema: Schema, description: string, status = 200): Answer<string | WrittenReply | LargeReply> {
  return { status, description, content: { [JSON_TYPE]: schema }, kind: 'encoded' };
}

export const EVENT_STREAM_TYPE = 'text/event-stream';

/** Server-sent events that go on until the service or the client ends them. */
export function eventStream(schema: Schema, description: string): Answer<StreamReply> {
  return { status: 200, description, content: { [EVENT_STREAM_TYPE]: schema }, kind: 'encoded' };
}

/** Either of two answers of one status, by what the client accepts. */
export function either<A, B>(one: Answer<A>, other: Answer<B>): Answer<A | B> {
  return { ...one, content: { ...one.content, ...other.content } };
}

/** A reply that the handler writes to `ctx` itself: files, pages, redirects, streams. */
export function own(
  status: number,
  description: string,
  content?: Answer['content'],
  headers?: Answer['headers'],
): Answer<void> {
  return { status, description, ...(content && { content }), ...(headers && { headers }), kind: 'own' };
}

/** The result of a handler that chooses among several answers, or words the message itself. */
export class Said<T> {
  constructor(
    readonly data: T,
    readonly message?: string,
    readonly status?: number,
  ) {}
}

/** The data under a message other than the answer's own, or under another of the route's statuses. */
export function say<T>(value: T, message?: string, status?: number): Said<T> {
  return new Said(value, message, status);
}

type ParamsOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { [N in Name]: string } & ParamsOf<Rest>
  : Path extends `${string}*${infer Name}/${string}` | `${string}:${infer Name}` | `${string}*${infer Name}`
    ? { [N in Name]: string }
    : object;

type QueryOf<Q extends Parameters> = { [Name in keyof Q]: QueryValue<Q[Name]> };
/** A parameter that is required, or whose schema has a `default`, is always there. */
type QueryValue<P extends Parameter> = P extends { required: true } | { schema: { default: unknown } }
  ? TypeOf<P['schema']>
  : TypeOf<P['schema']> | undefined;

type Returned<A> = A extends readonly Answer<infer T>[] ? T : A extends Answer<infer T> ? T : never;

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Which requests a route answers, as the documents write it: `GET /api/data/:collectionName`. */
export type RequestLine = `${Method} /${string}`;

export type PathOf<Line extends RequestLine> = Line extends `${Method} ${infer Path}` ? Path : never;

/** Everything about one route: the router, the checks, the API's document and its tests are derived from it. */
export interface RouteDefinition<
  Path extends string = string,
  Given extends object = object,
  Query extends Parameters = Parameters,
  Body = unknown,
  A extends Answer | readonly Answer[] = Answer | readonly Answer[],
> {
  /** `operationId`: unique in the whole API. */
  id: string;
  /** The command that does the same; absent where there is none, or where it is the action of `access`. */
  command?: string;
  summary: string;
  description?: string;
  access: Access<Given>;
  /** Where it is one of the list's `tags`. */
  tag?: string;
  /** Where it is not the list's. */
  rate?: RateClass;
  /** Parameters of the path that mean something else here than in the rest of the group. */
  params?: Parameters;
  query?: Query;
  /** Parameters of the query that the handler reads itself. */
  ownQuery?: Parameters;
  headers?: Parameters;
  /** A JSON body: the schema is its check (400 VALIDATION_FAILED) and its type. */
  body?: Schema<Body>;
  /**
   * Instead of `body`: JSON that the use case checks by rules of its own, as documents by the fields of their
   * collection. The schema documents it; checked is that it is an object, where the schema says so (400 INVALID_BODY).
   */
  openBody?: Schema<Body>;
  /** The body may be left out; it is then checked as `{}`. */
  bodyIsOptional?: boolean;
  /** How large the JSON body may be; `document` unless it is said. */
  bodySize?: BodySize;
  /** Shown in the document. */
  example?: unknown;
  /** Instead of `body`: content that the handler reads itself. JSON is parsed into `ctx.request.body` first. */
  ownBody?: OwnBody;
  answers: A;
  /** Beyond those that access, path, body and limits bring with them. */
  errors?: RouteErrors;
  handle(
    input: { app: App; ctx: RouteContext; params: ParamsOf<Path>; query: QueryOf<Query>; body: Body } & Given,
  ): Promise<Returned<A> | Said<Returned<A>>> | Returned<A> | Said<Returned<A>>;
}

/** A route as lists hold it, whatever its handler gets. */
export interface Route extends Omit<RouteDefinition, 'access' | 'handle'> {
  method: Method;
  path: string;
  access: Access;
  handle: (input: never) => unknown;
}

/** A route that is mounted by another list too: `Given` is what its handler takes of access. */
export type SharedRoute<Given extends object> = Route & { readonly takes?: (given: Given) => void };

/** One route as a value. */
export function route<
  const Line extends RequestLine,
  Given extends object,
  const Query extends Parameters,
  Body,
  const A extends Answer | readonly Answer[],
>(line: Line, definition: RouteDefinition<PathOf<Line>, Given, Query, Body, A>): SharedRoute<Given> {
  return { ...readRequestLine(line), ...definition };
}

/**
 * The same route at another place and for others, as `<id>OfProject`. The last parameters of the path are its own, in
 * their order, whatever they are called there. With other `answers`, `present` makes them of what the handler returns.
 */
export function mountedAt<Given extends object>(
  line: RequestLine,
  { rate: _own, ...shared }: SharedRoute<Given>,
  access: Access<NoInfer<Given>>,
  {
    present = (returned) => returned,
    ...more
  }: Pick<Partial<RouteDefinition>, 'command' | 'answers' | 'description' | 'ownQuery'> & {
    present?: (returned: unknown) => unknown;
  } = {},
): Route {
  const { method, path } = readRequestLine(line);
  const [theirs, own] = [namesIn(path), namesIn(shared.path)];
  const places = own.map((name, at) => [name, theirs[theirs.length - own.length + at]!] as const);
  const handle = shared.handle as (input: object) => unknown;
  return {
    ...shared,
    ...more,
    ...{ id: `${shared.id}OfProject`, method, path, access },
    async handle({ params, ...input }: { params: Record<string, string> }) {
      const named = Object.fromEntries(places.map(([name, there]) => [name, params[there]]));
      return present(await handle({ ...input, params: named }));
    },
  };
}

const namesIn = (path: string): string[] => [...path.matchAll(/[:*](\w+)/g)].map(([, name]) => name!);

export function readRequestLine(line: RequestLine): { method: Method; path: string } {
  const [method, path] = line.split(' ') as [Method, string];
  return { method, path };
}

/** Routes that readers of the document meet together. */
export interface RouteList {
  /** The beginning of all their paths: unknown paths below it are refused by the guards first. */
  prefix: string;
  tag: string;
  /** Further tags that single routes have, with what they are about. */
  tags?: Readonly<Record<string, string>>;
  /** Of its routes that say none themselves, and of every other path below the prefix. */
  rate: RateClass;
  /** Of paths below the prefix that are no route: where the guard looks for a key. */
  keyIn?: KeyPlace;
  /** The tag in a sentence; said by the first group that has it. */
  about?: string;
  /** Parameters of their paths that are not just any text. */
  params?: Parameters;
  /** Every request below the prefix meets it first, also one for a path or method that does not exist. */
  guard?: (app: App) => (ctx: RouteContext) => Promise<void> | null;
  routes: readonly Route[];
}

/** A part of a path that names something; 404 with the code `unknown` when nothing has that name. */
export function naming(description: string, unknown: string, schema: Schema<string> = TEXT): Parameter<string> {
  return { description, schema, errors: { 404: [unknown] } };
}

export function parameter<const S extends Schema>(description: string, schema: S) {
  return { description, schema };
}

/** A boolean of a query string. */
export function flagParameter(description: string) {
  return { description, schema: withDefault(FLAG, false) };
}

/** A whole number of a query string in plain digits, from 1 to `max`; beyond `cap` it counts as `cap`. */
export function wholeNumberParameter(
  description: string,
  fallback: number,
  { max = MAX_WHOLE, cap = undefined as number | undefined } = {},
) {
  return { description, schema: withDefault(integer({ minimum: 1, maximum: max }), fallback), cap };
}

/** The largest that nine digits can say. */
const MAX_WHOLE = 999_999_999;

/** As many as are asked for, but not more than `cap`. */
export function cappedParameter(description: string, fallback: number, cap: number) {
  return wholeNumberParameter(`${description}; more than ${cap} counts as ${cap}`, fallback, { cap });
}

/** The `page` of a list that answers with `pageOf`. */
export const PAGE_PARAMETER = wholeNumberParameter('Which page, from 1', 1, { cap: 100_000 });

/** The body of every error reply, as `writeErrors` writes it (decisions.md 1). */
export const ERROR = object(
  {
    success: oneOf(false),
    data: {
      ...object({ 'mfaToken?': TEXT, 'methods?': arrayOf(TEXT), 'expiresIn?': TEXT }),
      description: 'Empty except for `MFA_REQUIRED`, with the next step.',
    },
    message: text({ minLength: 1 }),
    error: text({ minLength: 1, description: 'The same text as `message`.' }),
    code: text({ pattern: '^[A-Z][A-Z0-9_]*$', description: 'The error code, for programs.' }),
    requestId: text({ description: 'As in the header `x-request-id`. Include it in support requests.' }),
    docs: text({ pattern: '^/', description: 'Path of the guide that explains the code.' }),
    'details?': arrayOf(
      object({
        field: TEXT,
        rule: TEXT,
        message: TEXT,
        'n?': WHOLE,
        'index?': { ...WHOLE, description: 'In a batch: index of the operation, from 0.' },
        'code?': TEXT,
        'methods?': { ...arrayOf(TEXT), description: 'For `STEP_UP_REQUIRED`: available methods.' },
        'side?': { ...oneOf('before', 'after'), description: 'For `RULE_REFUSED`: what the rule rejected.' },
        'mergeToken?': { ...TEXT, description: 'For `EMAIL_TAKEN` of an anonymous user: token for your server.' },
      }),
      { description: 'All violations. For streams, `n` is the index of the subscription, from 0.' },
    ),
  },
  'Error',
);

/** `{success:true, data, message}` */
export function envelope<T>(data: Schema<T>): Schema<{ success: true; data: T; message: string }> {
  return object({ success: literal(true), data, message: TEXT });
}

/** `{success:true, message}` */
const DONE: Schema = object({ success: literal(true), message: TEXT }, 'Done');

/** The `data` of operators' lists. */
export function listOf<T>(item: Schema<T>): Schema<{ items: T[]; total: number }> {
  return object({ items: arrayOf(item), total: WHOLE });
}

/** The answer that `listOf` describes, for a list without pages. */
export function wholeList<T>(items: T[]): { items: T[]; total: number } {
  return { items, total: items.length };
}

/** The `data` of a page of a list. */
export function pageOf<T>(item: Schema<T>): Schema<{ items: T[]; total: number; page: number; limit: number }> {
  return object({ items: arrayOf(item), total: WHOLE, page: WHOLE, limit: WHOLE });
}
