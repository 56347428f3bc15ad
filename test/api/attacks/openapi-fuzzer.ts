import fc, { type Arbitrary } from 'fast-check';
import type { ApiDocument, ApiParameter, JsonSchema, Operation } from '../../world/app.js';
import { HOSTILE_JSON, HOSTILE_TEXTS } from './hostile-values.js';

/** Whose keys and tokens a request carries. Never the victim's: with those everything would be allowed. */
export const CARRIED = [
  'nothing',
  'publishable',
  'secret',
  'user',
  'operator',
  'viewer',
  'revoked',
  'nonsense',
] as const;
export type Carried = (typeof CARRIED)[number];

/**
 * One request as generated: names of things are filled in when it is sent, `own:` from the sender's project, `victim:`
 * from the other.
 */
export interface FuzzedRequest {
  method: string;
  /** The path with its query, ready but for the names. */
  path: string;
  headers: Record<string, string>;
  /** JSON text or raw bytes as text; undefined = no body. */
  body: string | undefined;
  carried: Carried;
}

/** Names of what the projects own, as they stand in paths; and keys by which parameters are recognised. */
const NAMES = [
  'projectId',
  'collectionName',
  'emptyCollection',
  'document',
  'trashed',
  'keyId',
  'user',
  'session',
  'template',
  'templateId',
  'webhook',
  'delivery',
  'mail',
  'audience',
  'contact',
  'broadcast',
  'provider',
] as const;

/** The same thing under the names that the document has for it. */
const CALLED: Record<string, readonly (typeof NAMES)[number][]> = {
  id: ['document', 'trashed', 'webhook', 'mail', 'broadcast'],
  collection: ['collectionName', 'emptyCollection'],
  collectionName: ['collectionName', 'emptyCollection'],
  deliveryId: ['delivery'],
  audienceId: ['audience'],
  contactId: ['contact'],
  name: ['template'],
  before: ['delivery'],
};

const reference = (whose: 'own' | 'victim', name: string): string => `@${whose}:${name}@`;

/** Puts the names in that a generated text only refers to. */
export function fillReferences(
  text: string,
  names: Record<'own' | 'victim', Readonly<Record<string, string>>>,
): string {
  return text.replace(
    /@(own|victim):(\w+)@/g,
    (_whole, whose: 'own' | 'victim', name: string) => names[whose][name] ?? 'x',
  );
}

function nameArbitrary(parameter: string): Arbitrary<string> {
  const fitting = CALLED[parameter] ?? NAMES.filter((name) => name === parameter);
  const own = fc.constantFrom(...(fitting.length > 0 ? fitting : NAMES)).map((name) => reference('own', name));
  const victims = fc.constantFrom(...(fitting.length > 0 ? fitting : NAMES)).map((name) => reference('victim', name));
  return fc.oneof({ weight: 5, arbitrary: own }, { weight: 2, arbitrary: victims });
}

const hostileText = fc.constantFrom(...HOSTILE_TEXTS);

/**
 * Every operation of a document with an arbitrary request to it: good, half good and hostile parts in every mixture.
 */
export function fuzzOperations(document: ApiDocument): { title: string; request: Arbitrary<FuzzedRequest> }[] {
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      title: `${method.toUpperCase()} ${path}`,
      request: requestArbitrary(document, method.toUpperCase(), path, operation),
    })),
  );
}

function requestArbitrary(
  document: ApiDocument,
  method: string,
  path: string,
  operation: Operation,
): Arbitrary<FuzzedRequest> {
  return fc
    .record({
      path: pathArbitrary(path),
      query: queryArbitrary(document, operation.parameters),
      headers: headersArbitrary(operation.parameters),
      body: bodyArbitrary(document, operation),
      carried: fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom(...fittingCredentials(operation)) },
        { weight: 1, arbitrary: fc.constantFrom(...CARRIED) },
      ),
    })
    .map(({ path: filled, query, headers, body, carried }) => ({
      method,
      path: query === '' ? filled : `${filled}?${query}`,
      headers: { ...headers, ...(body && { 'content-type': body.type }) },
      body: body?.text,
      carried,
    }));
}

/** What gets in, so that most requests get past the guards. */
function fittingCredentials({ security }: Operation): Carried[] {
  const schemes = JSON.stringify(security).toLowerCase();
  if (schemes.includes('operator') || schemes.includes('admin')) return ['operator', 'operator', 'viewer'];
  return ['secret', 'secret', 'user', 'publishable'];
}

function pathArbitrary(path: string): Arbitrary<string> {
  const parts = path.split(/(\{\w+\})/).map((part): Arbitrary<string> => {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name === undefined) return fc.constant(part);
    const hostile = fc
      .oneof(hostileText, fc.string({ unit: 'binary', maxLength: 20 }).map(wellFormed))
      .map(encodeURIComponent);
    return fc.oneof({ weight: 6, arbitrary: nameArbitrary(name) }, { weight: 1, arbitrary: hostile });
  });
  return fc.tuple(...parts).map((filled) => filled.join(''));
}

const wellFormed = (text: string): string => (text as string & { toWellFormed(): string }).toWellFormed();

function queryArbitrary(document: ApiDocument, parameters: readonly ApiParameter[]): Arbitrary<string> {
  const declared = parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, schema }) =>
      fc.oneof(
        { weight: 4, arbitrary: fc.constant('') },
        {
          weight: 3,
          arbitrary: valueArbitrary(document, schema, name, 1).map(
            (json) => `${name}=${encodeURIComponent(wellFormed(plainText(json).slice(0, MAX_QUERY_CHARACTERS)))}`,
          ),
        },
        { weight: 2, arbitrary: hostileText.map((text) => `${name}=${encodeURIComponent(text)}`) },
        {
          weight: 1,
          arbitrary: fc.constantFrom(`${name}[$ne]=1`, `${name}=1&${name}=2`, `${name}=%`, `${name}=%ff`, name),
        },
      ),
    );
  const invented = fc.oneof(
    { weight: 8, arbitrary: fc.constant('') },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        'a[$gt]=',
        '__proto__=1',
        'text_regex=(a+)+$',
        'text_in=a,b',
        'text_gt=1e400',
        '%00=1',
        '$where=1',
        '&&&',
        '=',
      ),
    },
  );
  return fc.tuple(...declared, invented).map((all) => all.filter((part) => part !== '').join('&'));
}

/** Headers of 16 KiB and more are refused before anybody looks at them, which would be a test of nothing else. */
const MAX_QUERY_CHARACTERS = 100;

const plainText = (json: string): string => {
  const value: unknown = JSON.parse(json);
  return typeof value === 'string' ? value : json;
};

/** Header values may hold printable Latin-1 only: no client library sends anything else. */
const headerText = hostileText.filter((text) => /^[\x20-\x7e\xa0-\xff]*$/.test(text));

function headersArbitrary(parameters: readonly ApiParameter[]): Arbitrary<Record<string, string>> {
  const names = parameters
    .filter((parameter) => parameter.in === 'header' && parameter.name !== 'x-api-key')
    .map(({ name }) => name);
  const more = [
    'x-request-id',
    'origin',
    'range',
    'if-none-match',
    'cookie',
    'idempotency-key',
    'x-refresh-token',
    'x-refresh-token-mode',
    'accept-encoding',
  ];
  return fc
    .dictionary(fc.constantFrom(...names, ...more), headerText, { maxKeys: 2 })
    .map((headers) => ({ ...headers }));
}

interface Body {
  type: string;
  text: string;
}

function bodyArbitrary(document: ApiDocument, operation: Operation): Arbitrary<Body | undefined> {
  const content = Object.entries(operation.requestBody?.content ?? {});
  if (content.length === 0)
    return fc.oneof({ weight: 8, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: junkBody });
  const [type, { schema, example }] = content[0]!;
  const good: Arbitrary<Body> = type.includes('json')
    ? fc
        .oneof(
          { weight: 4, arbitrary: valueArbitrary(document, schema, 'body', 4) },
          ...(example === undefined ? [] : [{ weight: 1, arbitrary: fc.constant(JSON.stringify(example)) }]),
        )
        .map((text) => ({ type: 'application/json', text }))
    : type.includes('multipart')
      ? multipartArbitrary
      : fc.string({ unit: 'binary-ascii', maxLength: 50 }).map((text) => ({ type: 'text/plain', text }));
  return fc.oneof(
    { weight: 10, arbitrary: good },
    { weight: 1, arbitrary: junkBody },
    { weight: 1, arbitrary: fc.constant(undefined) },
  );
}

const junkBody: Arbitrary<Body> = fc.record({
  type: fc.constantFrom(
    'application/json',
    'application/json; charset=utf-16',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    '',
  ),
  text: fc.oneof(
    fc.constantFrom(...HOSTILE_JSON),
    fc.constantFrom('{', '{"a":', '[1,', '\ufeff{}', 'a=1&b=2', '{}{}', "{'a':1}", 'undefined'),
    fc.string({ unit: 'binary', maxLength: 50 }),
  ),
});

const multipartArbitrary: Arbitrary<Body> = fc
  .record({
    field: fc.constantFrom('file', 'file', 'file', 'x', '__proto__', ''),
    filename: fc.oneof(fc.constantFrom('a.txt', '../a', 'a"b', '', 'a.html'), hostileText),
    type: fc.constantFrom('text/plain', 'text/html', 'image/svg+xml', '', 'x'),
    bytes: fc.string({ unit: 'binary', maxLength: 50 }),
    end: fc.constantFrom('\r\n--B--\r\n', '\r\n--B--\r\n', '\r\n--B', ''),
  })
  .map(({ field, filename, type, bytes, end }) => ({
    type: 'multipart/form-data; boundary=B',
    text: `--B\r\nContent-Disposition: form-data; name="${field}"; filename="${filename}"\r\nContent-Type: ${type}\r\n\r\n${bytes}${end}`,
  }));

/**
 * JSON text that mostly fits the schema; anywhere in it something hostile may stand. `depth` bounds how far it nests.
 */
function valueArbitrary(document: ApiDocument, schema: JsonSchema, name: string, depth: number): Arbitrary<string> {
  return fc.oneof(
    { weight: 12, arbitrary: fittingArbitrary(document, schema, name, depth) },
    { weight: 1, arbitrary: fc.constantFrom(...HOSTILE_JSON) },
  );
}

function fittingArbitrary(
  document: ApiDocument,
  schema: JsonSchema | boolean,
  name: string,
  depth: number,
): Arbitrary<string> {
  // `true` and `false` are schemas too: anything, and nothing, which is worth a try.
  if (typeof schema === 'boolean') return fittingArbitrary(document, {}, name, depth);
  if (typeof schema.$ref === 'string') {
    const named = document.components.schemas[schema.$ref.split('/').at(-1)!];
    return named ? fittingArbitrary(document, named, name, depth) : fc.constant('{}');
  }
  if ('const' in schema) return fc.constant(JSON.stringify(schema.const));
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum.map((value) => JSON.stringify(value)));
  const choices = (schema.oneOf ?? schema.anyOf) as JsonSchema[] | undefined;
  if (choices) return fc.oneof(...choices.map((choice) => valueArbitrary(document, choice, name, depth)));
  const types = [schema.type ?? guessTypes(schema, depth)].flat() as string[];
  return fc.oneof(...types.map((type) => typeArbitrary(document, schema, type, name, depth)));
}

function guessTypes(schema: JsonSchema, depth: number): string[] {
  if (schema.properties || schema.additionalProperties) return ['object'];
  if (schema.items) return ['array'];
  return depth > 0
    ? ['string', 'number', 'boolean', 'null', 'object', 'array']
    : ['string', 'number', 'boolean', 'null'];
}

function typeArbitrary(
  document: ApiDocument,
  schema: JsonSchema,
  type: string,
  name: string,
  depth: number,
): Arbitrary<string> {
  switch (type) {
    case 'object':
      return objectArbitrary(document, schema, depth);
    case 'array': {
      const items = (schema.items ?? {}) as JsonSchema;
      const most = depth > 0 ? 3 : 0;
      return fc
        .array(valueArbitrary(document, items, name, depth - 1), { maxLength: most })
        .map((all) => `[${all.join(',')}]`);
    }
    case 'integer':
      return fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer()).map(String);
    case 'number':
      return fc.oneof(
        fc.integer().map(String),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => JSON.stringify(n)),
      );
    case 'boolean':
      return fc.boolean().map(String);
    case 'null':
      return fc.constant('null');
    default:
      return stringArbitrary(schema, name).map((text) => JSON.stringify(text));
  }
}

function objectArbitrary(document: ApiDocument, schema: JsonSchema, depth: number): Arbitrary<string> {
  const properties = (schema.properties ?? {}) as Record<string, JsonSchema>;
  const required = new Set((schema.required ?? []) as string[]);
  if (depth <= 0) return fc.constant('{}');
  const declared = Object.entries(properties).map(([name, inner]) =>
    fc
      .tuple(
        required.has(name) ? fc.integer({ min: 0, max: 19 }).map((at) => at > 0) : fc.boolean(),
        valueArbitrary(document, inner, name, depth - 1),
      )
      .map(([there, json]) => (there ? `${JSON.stringify(name)}:${json}` : '')),
  );
  const open = schema.additionalProperties !== false;
  const extraKey = fc.oneof(fc.constantFrom('text', 'title', 'name', 'a', 'meta.a', 'userId'), {
    weight: 1,
    arbitrary: fc.constantFrom(
      '$set',
      '__proto__',
      'constructor',
      '_id',
      '_bsvc',
      'isDeleted',
      'a.b',
      '',
      '_bsontype',
      '\0',
    ),
  });
  const extra = fc
    .tuple(fc.integer({ min: 0, max: open ? 2 : 9 }), extraKey, valueArbitrary(document, {}, 'x', open ? depth - 1 : 0))
    .map(([roll, key, json]) => (roll === 0 ? `${JSON.stringify(key)}:${json}` : ''));
  return fc.tuple(...declared, extra).map((all) => `{${all.filter((part) => part !== '').join(',')}}`);
}

const BY_NAME: Record<string, string[]> = {
  email: ['ann@example.test', reference('own', 'email')],
  password: ['correct horse battery', 'long enough'],
  currentPassword: ['correct horse battery'],
  newPassword: ['long enough'],
  to: ['ann@example.test'],
  url: ['http://127.0.0.1:9/', 'ftp://127.0.0.1/'],
  endpoint: ['http://127.0.0.1:9'],
  events: ['*', 'x.insert'],
  filePath: [reference('own', 'pendingPath'), reference('own', 'path')],
  path: [reference('own', 'path')],
  contentType: ['text/plain', 'text/html'],
  templateId: [reference('own', 'templateId'), reference('victim', 'templateId')],
  templateName: ['own', 'welcome'],
  audienceId: [reference('own', 'audience'), reference('victim', 'audience')],
  from: [reference('own', 'collectionName'), reference('victim', 'collectionName')],
  scheduledAt: ['2030-01-01T00:00:00Z'],
  since: ['1h', '9999999999d'],
  grace: ['1h'],
  sort: ['text', '-createdAt', '$a'],
  fields: ['text', 'a.b'],
  populate: ['text'],
  cursor: ['', 'start', 'eyJhIjoxfQ.AAAA'],
  page: ['1', '99999999999999'],
};

function stringArbitrary(schema: JsonSchema, name: string): Arbitrary<string> {
  const known = BY_NAME[name];
  const matching = typeof schema.pattern === 'string' ? findMatching(schema.pattern) : null;
  return fc.oneof(
    ...(known ? [{ weight: 4, arbitrary: fc.constantFrom(...known) }] : []),
    ...(matching ? [{ weight: 4, arbitrary: matching }] : []),
    { weight: 1, arbitrary: fc.constantFrom(...NAMES).map((one) => reference('own', one)) },
    { weight: 2, arbitrary: fc.string({ maxLength: 30 }) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
    { weight: 1, arbitrary: hostileText },
  );
}

/** Texts for a pattern, where fast-check can make some. */
function findMatching(pattern: string): Arbitrary<string> | null {
  try {
    const made = fc.stringMatching(new RegExp(pattern));
    fc.sample(made, { numRuns: 1, seed: 1 });
    return made;
  } catch {
    return null;
  }
}
