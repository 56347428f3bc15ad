import {
  ERROR,
  JSON_ERRORS,
  JSON_TYPE,
  naming,
  type Access,
  type Answer,
  type OwnBody,
  type Parameter,
  type Parameters,
  type RouteErrors,
  type Route,
  type RouteList,
} from '../../http/routes/route.js';
import { TEXT, text, type JsonSchema } from '../../platform/schema/schema.js';
import { openComponents, type Components } from './schema-components.js';

/** The parts of an OpenAPI 3.1 document that the page reads. */
export interface ApiDocument {
  openapi: string;
  info: { title: string; version: string; description: string };
  servers: { url: string }[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, JsonSchema>;
    responses: Record<string, ApiResponse>;
    headers: Record<string, object>;
    securitySchemes: Record<string, JsonSchema>;
  };
}

export interface Operation {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  security: Record<string, never[]>[];
  parameters: ApiParameter[];
  requestBody?: {
    description?: string;
    required: boolean;
    content: Record<string, { schema: JsonSchema; example?: unknown }>;
  };
  responses: Record<string, ApiResponse>;
}

export interface ApiParameter {
  name: string;
  in: 'path' | 'query' | 'header';
  description: string;
  required: boolean;
  schema: JsonSchema;
  style?: string;
  explode?: boolean;
}

export interface ApiResponse {
  $ref?: string;
  description: string;
  headers?: Record<string, object>;
  content?: Record<string, { schema: JsonSchema }>;
}

const ABOUT = `The HTTP API of bsvc, a self-hosted backend for applications.

Applications send their project’s key in the header \`x-api-key\`: the publishable one in browsers and apps, the secret one on servers. End users sign in by \`/api/userAuth\` and are then known by \`Authorization: Bearer <accessToken>\` beside the key. Operators, who look after projects, sign in by \`/api/admin/login\`.

Every error is a JSON object with \`success: false\`, a \`message\` for people, a \`code\` for programs and the \`requestId\` of the header \`x-request-id\`; the codes of each operation are listed with its statuses. A path that exists with another method returns 405 with \`Allow\`, any other path 404. \`RateLimit-*\` headers show the remaining requests. 429 and some other errors have \`Retry-After\`. Bodies are JSON of at most 1 MiB, 32 levels and 20,000 values, 50,000 in bulk writes and pipelines; those of sign-ins and accounts have at most 16 KiB and 200 values.`;

const RESPONSES: Readonly<Record<number, { name: string; description: string }>> = {
  400: { name: 'BadRequest', description: 'Invalid request' },
  401: { name: 'Unauthenticated', description: 'Authentication required' },
  403: { name: 'Forbidden', description: 'Permission denied' },
  404: { name: 'NotFound', description: 'Not found' },
  408: { name: 'RequestTimeout', description: 'Request timeout: the body arrived too slowly' },
  409: { name: 'Conflict', description: 'Conflict' },
  410: { name: 'Expired', description: 'Expired' },
  412: { name: 'PreconditionFailed', description: 'Precondition failed: changed since you read it' },
  413: { name: 'TooLarge', description: 'Request body too large' },
  416: { name: 'RangeNotSatisfiable', description: 'Range not satisfiable' },
  422: { name: 'Unprocessable', description: 'Differs from the first request with this key' },
  423: { name: 'Locked', description: 'Temporarily locked' },
  429: { name: 'TooManyRequests', description: 'Rate limit exceeded' },
  500: { name: 'InternalError', description: 'Internal server error' },
  503: { name: 'Unavailable', description: 'Service unavailable' },
  507: { name: 'NoSpace', description: 'The disk of the server is full' },
};

const HEADERS: Record<string, object> = {
  RequestId: { description: 'Id of the request in the logs', required: true, schema: { type: 'string' } },
  RetryAfter: { description: 'Seconds to wait before you retry', schema: { type: 'string', pattern: '^\\d+$' } },
  RateLimitLimit: {
    description: 'Requests in a window. Like the next three, in every response of a rate-limited operation',
    schema: { type: 'string', pattern: '^\\d+$' },
  },
  RateLimitRemaining: { description: 'Requests left in the window', schema: { type: 'string', pattern: '^\\d+$' } },
  RateLimitReset: { description: 'Seconds until the next window', schema: { type: 'string', pattern: '^\\d+$' } },
  RateLimitPolicy: {
    description: 'Name, requests and seconds of the window: `"user";q=3000;w=900`',
    schema: { type: 'string', pattern: '^"[a-z-]+";q=\\d+;w=\\d+$' },
  },
};
const headerRef = (name: string): object => ({ $ref: `#/components/headers/${name}` });
const ALWAYS = { 'x-request-id': headerRef('RequestId') };
const LIMITED = {
  'RateLimit-Limit': headerRef('RateLimitLimit'),
  'RateLimit-Remaining': headerRef('RateLimitRemaining'),
  'RateLimit-Reset': headerRef('RateLimitReset'),
  'RateLimit-Policy': headerRef('RateLimitPolicy'),
};
const WITH_RETRY = new Set([409, 423, 429, 503, 507]);

/** Of every path that has it. */
const PROJECT_ID = naming('Id of the project', 'PROJECT_NOT_FOUND', text({ pattern: '^[0-9a-fA-F]{24}$' }));
const ANY_TEXT: Parameter = { description: '', schema: TEXT };

/** A document while it is made, list by list. */
export interface ApiDocumentDraft {
  readonly document: ApiDocument;
  /** Throws when two operations share an id, or two schemas a title. */
  add: (list: RouteList) => void;
}

/** A document without operations, of a service under the path `base`. */
export function openApiDocument(info: Pick<ApiDocument['info'], 'title' | 'version'>, base: string): ApiDocumentDraft {
  const components = openComponents();
  const error = components.place(ERROR);
  const document: ApiDocument = {
    openapi: '3.1.0',
    info: { ...info, description: ABOUT },
    servers: [{ url: base || '/' }],
    tags: [],
    paths: {},
    components: {
      schemas: components.schemas,
      responses: errorResponses(error),
      headers: HEADERS,
      securitySchemes: {},
    },
  };
  const ids = new Set<string>();
  const addRoute = ({ tag, params, rate }: RouteList, route: Route): void => {
    if (ids.has(route.id)) throw new Error(`two operations are named ${route.id}`);
    ids.add(route.id);
    const named = pathParameters(route.path, { ...params, ...route.params });
    const operation = describeOperation({ rate, tag, ...route, params: named }, components);
    (document.paths[templateOf(route.path)] ??= {})[route.method.toLowerCase()] = operation;
    for (const scheme of route.access.security.flat()) {
      document.components.securitySchemes[scheme.name] = scheme.definition;
    }
  };
  return {
    document,
    add(list) {
      const { tag, about, tags = {}, routes } = list;
      if (about !== undefined) document.tags.push({ name: tag, description: about });
      for (const [name, description] of Object.entries(tags)) document.tags.push({ name, description });
      for (const route of routes) addRoute(list, route);
    },
  };
}

/**
 * The OpenAPI 3.1 document of lists of routes under the path `base`. Throws when two operations share an id, two
 * schemas a title, or a tag is not described once.
 */
export function buildApiDocument(lists: readonly RouteList[], version: string, base = ''): ApiDocument {
  const { document, add } = openApiDocument({ title: 'bsvc', version }, base);
  for (const list of lists) add(list);
  for (const { tag } of lists) {
    if (document.tags.filter(({ name }) => name === tag).length !== 1) {
      throw new Error(`one list has to say what ${tag} is about`);
    }
  }
  return document;
}

/** As OpenAPI writes a path of the router: `/files/*path` and `/:id` become `/files/{path}` and `/{id}`. */
export function templateOf(path: string): string {
  return path.replace(/[:*](\w+)/g, '{$1}');
}

type DescribedRoute = Route & { /** All of the path, in its order. */ params: Parameters; tag: string };

function pathParameters(path: string, described: Parameters): Parameters {
  const known: Parameters = { projectId: PROJECT_ID, ...described };
  return Object.fromEntries([...path.matchAll(/[:*](\w+)/g)].map(([, name]) => [name!, known[name!] ?? ANY_TEXT]));
}

function describeOperation(route: DescribedRoute, components: Components): Operation {
  const requestBody = describeBody(route, components);
  return {
    operationId: route.id,
    summary: route.summary,
    description: [route.description, `**Access:** ${route.access.note}`].filter(Boolean).join('\n\n'),
    tags: [route.tag],
    security: securityOf(route.access),
    parameters: parametersOf(route, components),
    ...(requestBody && { requestBody }),
    responses: responsesOf(route, components),
  };
}

function describeBody(route: Route, components: Components): Operation['requestBody'] {
  const { ownBody, example, bodyIsOptional } = route;
  const content = contentOf(route);
  if (!content) return undefined;
  const describe = ([type, schema]: [string, JsonSchema]) =>
    [type, { schema: components.place(schema), ...(example !== undefined && { example }) }] as const;
  return {
    ...(ownBody?.description !== undefined && { description: ownBody.description }),
    required: !(bodyIsOptional ?? ownBody?.required === false),
    content: Object.fromEntries(Object.entries(content).map(describe)),
  };
}

/** By media type. */
function contentOf({ body, openBody, ownBody }: Route): OwnBody['content'] | undefined {
  const json = body ?? openBody;
  return json ? { [JSON_TYPE]: json } : ownBody?.content;
}

function securityOf({ security }: Access): Operation['security'] {
  return security.map((together) => Object.fromEntries(together.map(({ name }) => [name, []])));
}

function parametersOf(route: DescribedRoute, components: Components): ApiParameter[] {
  const describe = (place: ApiParameter['in'], parameters: Parameters = {}): ApiParameter[] =>
    Object.entries(parameters).map(([name, { description, required, schema, isOpen }]) => ({
      name,
      in: place,
      description,
      required: place === 'path' || required === true,
      schema: components.place(schema),
      ...(isOpen && { style: 'form', explode: true }),
    }));
  return [
    ...describe('path', route.params),
    ...describe('query', { ...route.query, ...route.ownQuery }),
    ...describe('header', route.headers),
  ];
}

function responsesOf(route: DescribedRoute, components: Components): Operation['responses'] {
  const isLimited = route.rate !== 'free';
  const responses: Operation['responses'] = {};
  for (const answer of [route.answers].flat() as readonly Answer[]) {
    responses[answer.isAny ? 'default' : answer.status] = describeAnswer(answer, isLimited, components);
  }
  for (const [status, codes] of Object.entries(refusalsOf(route, isLimited))) {
    const { name } = RESPONSES[Number(status)]!;
    const description = [...new Set(codes)].map((code) => `\`${code}\``).join(', ');
    const answered = responses[status];
    if (!answered) {
      responses[status] = { $ref: `#/components/responses/${name}`, description };
    } else {
      answered.description += `; or ${description}`;
      const content = answered.content![JSON_TYPE]!;
      content.schema = { anyOf: [content.schema, components.place(ERROR)] };
    }
  }
  return responses;
}

function describeAnswer(answer: Answer, isLimited: boolean, components: Components): ApiResponse {
  const own = Object.entries(answer.headers ?? {}).map(
    ([name, description]) => [name, { description, schema: { type: 'string' } }] as const,
  );
  return {
    description: answer.description,
    headers: { ...Object.fromEntries(own), ...(isLimited && LIMITED), ...ALWAYS },
    ...(answer.content && {
      content: Object.fromEntries(
        Object.entries(answer.content).map(([type, schema]) => [type, { schema: components.place(schema) }]),
      ),
    }),
  };
}

/** Everything that a route can refuse with: its own, and what comes with its path, guards, body and limits. */
function refusalsOf(route: DescribedRoute, isLimited: boolean): Record<string, string[]> {
  const { path, access, params, errors = {} } = route;
  const sources: RouteErrors[] = [
    JSON_TYPE in (contentOf(route) ?? {}) ? JSON_ERRORS : {},
    access.errors,
    ...Object.values(params).map((parameter) => parameter.errors ?? {}),
    errors,
    isLimited ? { 429: ['RATE_LIMITED'] } : {},
    { 500: ['INTERNAL', 'STORE_DAMAGED'] },
    path.startsWith('/api/health')
      ? {}
      : {
          503: ['OVERLOADED', 'DATABASE_UNAVAILABLE', 'RESTORING', 'STORE_READ_ONLY', 'STORE_FAILED'],
          507: ['NO_SPACE'],
        },
  ];
  const all: Record<string, string[]> = {};
  for (const source of sources) {
    for (const [status, codes] of Object.entries(source)) (all[status] ??= []).push(...codes);
  }
  return all;
}

function errorResponses(error: JsonSchema): Record<string, ApiResponse> {
  return Object.fromEntries(
    Object.entries(RESPONSES).map(([status, { name, description }]) => [
      name,
      {
        description,
        headers: {
          ...(WITH_RETRY.has(Number(status)) && { 'Retry-After': headerRef('RetryAfter') }),
          ...LIMITED,
          ...ALWAYS,
        },
        content: { [JSON_TYPE]: { schema: error } },
      },
    ]),
  );
}
