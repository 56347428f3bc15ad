import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import type { ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { ROUTE_LISTS } from '../../src/api.js';
import {
  buildApiDocument,
  type ApiParameter,
  type ApiResponse,
  type Operation,
} from '../../src/features/reference/api-document.js';
import { noteRefusal } from './seen-refusals.js';

/** A request and its reply. */
export interface Exchange {
  method: string;
  url: string;
  requestHeaders: IncomingHttpHeaders;
  /** Null when unknown. */
  requestBody: Buffer | null;
  status: number;
  headers: OutgoingHttpHeaders;
  body: Buffer | null;
  /** Whether the service counts requests; null = some only. */
  hasLimits: boolean | null;
}

const document = buildApiDocument(ROUTE_LISTS, 'test');
const ajv = new Ajv2020({ strict: false, allErrors: false });
/** Parameters are text. */
const coercing = new Ajv2020({ strict: false, coerceTypes: true });
for (const each of [ajv, coercing]) {
  (addFormats as unknown as (to: Ajv2020) => void)(each);
  each.addSchema({ $id: 'api', ...document });
}

/** What of a reply, and of the request when it succeeded, is not as the document says. */
export function checkExchange(exchange: Exchange): string[] {
  const { method, status } = exchange;
  if (method === 'OPTIONS') return [];
  // Not by URL, which would take `/.` away: whole addresses and fragments are what a server must bear.
  const target = exchange.url.replace(/^https?:\/\/[^/?#]*/i, '').replace(/#.*$/, '');
  const [path = '', ...search] = target.split('?');
  const query = new URLSearchParams(search.join('?'));
  const found = findOperation(method === 'HEAD' ? 'get' : method.toLowerCase(), path);
  // A person who mistyped an address outside the API gets a page.
  const isPage = mediaType(exchange.headers['content-type']) === 'text/html';
  if (!found && status === 404 && !path.startsWith('/api/') && isPage) return [];
  if (!found) return status < 400 ? ['there is no such operation'] : checkBody(exchange, ERROR_RESPONSE, ERROR_POINTER);
  const { [status]: own, default: any } = found.operation.responses;
  if (!own && any)
    return [...checkBody(exchange, any, `${found.pointer}/responses/default`), ...checkCaching(exchange)];
  const response = own;
  if (!response) return [`the status is not described: ${textOf(exchange.body).slice(0, 300)}`];
  const pointer = response.$ref ? response.$ref.slice(1) : `${found.pointer}/responses/${status}`;
  return [
    ...checkBody(exchange, response.$ref ? resolve(response.$ref) : response, pointer),
    ...checkHeaders(exchange, response.$ref ? resolve(response.$ref) : response),
    ...checkCaching(exchange),
    ...checkLimits(exchange, found.operation),
    ...(status >= 400 ? checkCode(exchange, response, found.operation) : checkRequest(exchange, query, found)),
  ];
}

interface Found {
  operation: Operation;
  pointer: string;
  params: Record<string, string>;
}

const TEMPLATES = Object.keys(document.paths)
  .map((path) => ({
    path,
    names: [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!),
    pattern: new RegExp(
      `^${path
        .replace(/\./g, '\\.')
        .replace('/files/{path}', '/files/(.+)')
        .replace('/run/{address}', '/run/(.+)')
        .replace(/\{\w+\}/g, '([^/]+)')}/?$`,
    ),
    // Literal parts before parameters, part by part.
    rank: path.replace(/\{\w+\}/g, '~'),
  }))
  .sort((a, b) => (a.rank < b.rank ? -1 : 1));

function findOperation(method: string, pathname: string): Found | null {
  for (const { path, names, pattern } of TEMPLATES) {
    const operation = document.paths[path]![method];
    const match = operation && pattern.exec(pathname);
    if (!match) continue;
    return {
      operation,
      pointer: `/paths/${escapePointer(path)}/${method}`,
      params: Object.fromEntries(names.map((name, at) => [name, decode(match[at + 1]!)])),
    };
  }
  return null;
}

const ERROR_POINTER = '/components/responses/BadRequest';
const ERROR_RESPONSE = document.components.responses.BadRequest!;

function checkBody({ method, headers, body }: Exchange, response: ApiResponse, pointer: string): string[] {
  if (method === 'HEAD' || body === null) return [];
  if (!response.content)
    return body.length > 0 ? [`a body where none is described: ${textOf(body).slice(0, 100)}`] : [];
  const type = mediaType(headers['content-type']);
  const key = response.content[type] ? type : '*/*';
  if (!response.content[key]) return [`the content type ${type} is not described`];
  if (type !== JSON_TYPE || headers['content-encoding'] !== undefined) return [];
  return validate(`${pointer}/content/${escapePointer(key)}/schema`, JSON.parse(textOf(body)), 'the reply');
}

function checkHeaders({ headers }: Exchange, { headers: described = {} }: ApiResponse): string[] {
  return Object.entries(described).flatMap(([name, header]) => {
    const { required } = ('$ref' in header ? HEADERS[String(header.$ref).split('/').at(-1)!] : header) as {
      required?: boolean;
    };
    return required && headers[name.toLowerCase()] === undefined ? [`the header ${name} is missing`] : [];
  });
}

/** Each reply says who may keep it: a shared cache would show to others what a key may read. */
function checkCaching({ status, headers }: Exchange): string[] {
  const keeps = headers['cache-control'] !== undefined || status === 204 || mediaType(headers['content-type']) === '';
  return keeps ? [] : ['the header Cache-Control is missing'];
}

const HEADERS = document.components.headers;
const LIMIT_HEADERS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'];

/** Every reply of an operation whose answers are described with limits tells of them, refusals too; no other does. */
function checkLimits({ status, requestHeaders, headers, hasLimits }: Exchange, { responses }: Operation): string[] {
  // Who is turned away because of load, or could not be looked up, was not counted yet.
  if (hasLimits === null || status >= 500) return [];
  const isLimited = Object.values(responses).some(
    (response) => !response.$ref && response.headers?.[LIMIT_HEADERS[0]!],
  );
  return LIMIT_HEADERS.flatMap((name) => {
    const isThere = headers[name.toLowerCase()] !== undefined;
    if (isThere === (isLimited && hasLimits)) return [];
    // With a live secret key requests count by project, if that has a limit.
    if (!isThere && String(requestHeaders['x-api-key'] ?? '').startsWith('sk_live_')) return [];
    return [isThere ? `the header ${name} is not described, or nothing is limited` : `the header ${name} is missing`];
  });
}

/** The codes of refusals stand in the description of their status. */
function checkCode({ method, body }: Exchange, { description, $ref }: ApiResponse, operation: Operation): string[] {
  if (!$ref || method === 'HEAD' || body === null) return [];
  const { code: sent, details } = JSON.parse(textOf(body)) as { code: string; details?: { rule: string }[] };
  // Own code refuses with codes of its own.
  const code = details?.[0]?.rule === 'hook' ? 'HOOK_REFUSED' : sent;
  if (!description.includes(`\`${code}\``)) return [`the code ${code} is not described`];
  noteRefusal(operation.operationId, code);
  return [];
}

function checkRequest(exchange: Exchange, query: URLSearchParams, { operation, pointer, params }: Found): string[] {
  const { requestBody: described, parameters } = operation;
  const problems = parameters.flatMap((parameter, at) =>
    valuesOf(parameter, exchange, query, params).flatMap((value) =>
      value === undefined
        ? [`${parameter.in} parameter ${parameter.name} is described as required and was not sent`]
        : validateText(`${pointer}/parameters/${at}/schema`, value, `${parameter.in} parameter ${parameter.name}`),
    ),
  );
  const { requestBody: body, requestHeaders } = exchange;
  if (!described || body === null) return problems;
  if (body.length === 0)
    return described.required ? [...problems, 'a body is described as required and was not sent'] : problems;
  const type = mediaType(requestHeaders['content-type']);
  if (described.content['*/*']) return problems;
  if (type === 'multipart/form-data')
    return described.content[type] ? problems : [...problems, 'a form is not described'];
  if (!described.content[JSON_TYPE] || requestHeaders['content-encoding'] !== undefined) return problems;
  const schema = `${pointer}/requestBody/content/${escapePointer(JSON_TYPE)}/schema`;
  return [...problems, ...validate(schema, JSON.parse(withoutMark(textOf(body))), 'the request')];
}

/** Undefined stands for one that is missing although it is required. */
function valuesOf(
  { name, in: place, required, explode }: ApiParameter,
  { requestHeaders }: Exchange,
  query: URLSearchParams,
  params: Record<string, string>,
): (string | undefined)[] {
  if (explode) return [];
  const header = requestHeaders[name];
  const values =
    place === 'path'
      ? [params[name]]
      : place === 'query'
        ? query.getAll(name)
        : header === undefined
          ? []
          : [header].flat();
  return values.length === 0 && required ? [undefined] : values;
}

const validators = new Map<string, ValidateFunction>();

function compiled(by: Ajv2020, pointer: string): ValidateFunction {
  const key = (by === coercing ? 'text ' : '') + pointer;
  let validator = validators.get(key);
  if (!validator) {
    const schema = { $ref: `api#${pointer.split('/').map(encodeURIComponent).join('/')}` };
    validator = by.compile(by === coercing ? { type: 'object', properties: { value: schema } } : schema);
    validators.set(key, validator);
  }
  return validator;
}

function validate(pointer: string, value: unknown, what: string): string[] {
  const validator = compiled(ajv, pointer);
  return validator(value) ? [] : [`${what} ${differences(validator)} in ${JSON.stringify(value).slice(0, 400)}`];
}

function validateText(pointer: string, value: string, what: string): string[] {
  const validator = compiled(coercing, pointer);
  return validator({ value }) ? [] : [`${what} ${differences(validator)}: ${JSON.stringify(value).slice(0, 100)}`];
}

function differences({ errors }: ValidateFunction): string {
  return (errors ?? [])
    .map(({ instancePath, message, params }) => `${instancePath || '/'} ${message} ${JSON.stringify(params)}`)
    .join('; ');
}

const JSON_TYPE = 'application/json';

function mediaType(header: unknown): string {
  return String(header ?? '')
    .split(';', 1)[0]!
    .trim()
    .toLowerCase();
}

function textOf(body: Buffer | null): string {
  return body?.toString('utf8') ?? '';
}

/** A client may begin its text with a byte order mark. */
function withoutMark(text: string): string {
  return text.replace(/^\ufeff/, '');
}

function resolve(ref: string): ApiResponse {
  return document.components.responses[ref.split('/').at(-1)!]!;
}

function escapePointer(part: string): string {
  return part.replaceAll('~', '~0').replaceAll('/', '~1');
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
