import { missing } from '../../errors.js';
import { parameter } from '../../http/routes/route.js';
import { TEXT } from '../../platform/schema/schema.js';
import type { ApiDocument, ApiParameter, ApiResponse, Operation } from './api-document.js';

/** What most operations refuse with, beside codes of their own: said once. */
const SHARED: Readonly<Record<string, readonly string[]>> = {
  400: ['INVALID_JSON', 'INVALID_BODY', 'VALIDATION_FAILED', 'HOOK_REFUSED', 'HOOK_DEPTH'],
  401: ['API_KEY_MISSING', 'API_KEY_INVALID', 'AUTH_REQUIRED', 'TOKEN_INVALID', 'TOKEN_EXPIRED', 'HOOK_REFUSED'],
  403: ['ORIGIN_NOT_ALLOWED', 'MFA_ENROLMENT_REQUIRED', 'HOOK_REFUSED'],
  404: ['HOOK_REFUSED'],
  408: ['REQUEST_TIMEOUT'],
  409: ['HOOK_REFUSED'],
  410: ['HOOK_REFUSED'],
  412: ['HOOK_REFUSED'],
  413: ['BODY_TOO_LARGE', 'TOO_MANY_VALUES', 'TOO_MANY_KEYS', 'HOOK_REFUSED'],
  422: ['HOOK_REFUSED'],
  429: ['RATE_LIMITED'],
  500: ['INTERNAL', 'STORE_DAMAGED'],
  503: ['BUSY', 'OVERLOADED', 'DATABASE_UNAVAILABLE', 'RESTORING', 'STORE_READ_ONLY', 'STORE_FAILED', 'HOOK_FAILED'],
  507: ['NO_SPACE'],
};
const REFUSED = 'Refused';

export const TAG_QUERY = {
  tag: parameter('A tag of the document: only its operations, with shared parts listed once', TEXT),
};

/**
 * The short document of a tag as text, named by itself or by what its paths begin with (`data`); 404 NOT_FOUND with the
 * tags that there are.
 */
export function writeTag(document: ApiDocument, named: string): string {
  const begins = Object.entries(document.paths).find(([path]) => path.split('/')[2] === named);
  const tag = document.tags.find(({ name }) => name === (begins ? Object.values(begins[1])[0]!.tags[0] : named));
  if (!tag) {
    const names = document.tags.map(({ name }) => name).join(', ');
    throw missing('NOT_FOUND', `There is no tag of this name. Tags: ${names}`);
  }
  return JSON.stringify({ ...compactDocument(document, (name) => name === tag.name), tags: [tag] });
}

type Reference = { $ref: string };
type CompactOperation = Omit<Operation, 'parameters'> & { parameters?: (ApiParameter | Reference)[] };

/**
 * The operations of the tags that are chosen with everything said once, for programs with little room: repeated
 * parameters, refusals and paragraphs by reference, no headers that every reply has, no component that nothing refers
 * to.
 */
export function compactDocument(document: ApiDocument, isChosen: (tag: string) => boolean): ApiDocument {
  const paths: Record<string, Record<string, CompactOperation>> = {};
  const repeated = new Map<string, number>();
  const deduplicate = openDeduplication();
  for (const [path, operations] of Object.entries(document.paths)) {
    const chosen = Object.entries(operations).filter(([, { tags }]) => tags.some(isChosen));
    if (chosen.length === 0) continue;
    paths[path] = Object.fromEntries(
      chosen.map(([method, operation]) => [method, deduplicate(compactOperation(operation))]),
    );
    for (const parameter of Object.values(paths[path]).flatMap(({ parameters = [] }) => parameters)) {
      const text = JSON.stringify(parameter);
      repeated.set(text, (repeated.get(text) ?? 0) + 1);
    }
  }
  const parameters = nameParameters([...repeated].filter(([, times]) => times > 1).map(([text]) => text));
  for (const operation of Object.values(paths).flatMap((each) => Object.values(each))) {
    const placed = operation.parameters?.map((parameter) => parameters.get(JSON.stringify(parameter)) ?? parameter);
    if (placed?.length === 0) delete operation.parameters;
    else operation.parameters = placed;
  }
  const { schemas, responses, securitySchemes } = document.components;
  const shared = Object.entries(SHARED).map(
    ([status, codes]) => `${status} ${codes.map((code) => `\`${code}\``).join(', ')}`,
  );
  const components = {
    parameters: Object.fromEntries(
      [...parameters].map(([text, { $ref }]) => [$ref.slice(PARAMETERS.length), JSON.parse(text) as ApiParameter]),
    ),
    responses: {
      [REFUSED]: { ...withoutHeaders(responses.BadRequest!), description: `Of any operation: ${shared.join('; ')}` },
    },
    schemas,
    securitySchemes,
  };
  return {
    ...document,
    paths,
    components: keepReferred(paths, components),
  } as ApiDocument;
}

/** Shorter ones are shorter than what would stand for them. */
const WORTH_CHARACTERS = 80;

/** Leads from paragraphs, and lists of refusals, that an operation before has too to that operation. */
function openDeduplication(): (operation: CompactOperation) => CompactOperation {
  const said = new Map<string, string>();
  const once = (text: string, id: string): string => {
    const before = said.get(text);
    if (before !== undefined) return `${text.startsWith('**Access:**') ? '**Access:** ' : ''}As \`${before}\`.`;
    if (text.length > WORTH_CHARACTERS) said.set(text, id);
    return text;
  };
  return ({ responses, ...operation }) => {
    const { operationId: id, description } = operation;
    const refused = responses.default!;
    return {
      ...operation,
      description: description
        .split('\n\n')
        .map((paragraph) => once(paragraph, id))
        .join('\n\n'),
      responses: { ...responses, default: { ...refused, description: once(refused.description, id) } },
    };
  };
}

/** Errors in one response, since their bodies are alike: by status the codes that are the operation's own. */
function compactOperation(operation: Operation): CompactOperation {
  const responses: Record<string, ApiResponse> = {};
  const own: string[] = [];
  for (const [status, response] of Object.entries(operation.responses)) {
    if (response.$ref === undefined) {
      responses[status] = withoutHeaders(response);
      continue;
    }
    const codes = response.description
      .split(', ')
      .filter((code) => !SHARED[status]?.includes(code.replaceAll('`', '')));
    if (codes.length > 0) own.push(`${status} ${codes.join(', ')}`);
  }
  const description = own.join('; ');
  responses.default = { $ref: `#/components/responses/${REFUSED}`, description };
  // Optional is what a parameter is that says nothing.
  const parameters = operation.parameters.map(({ required, ...each }) => (required ? { ...each, required } : each));
  return { ...operation, parameters: parameters as ApiParameter[], responses };
}

/** Without the headers that every reply has. */
function withoutHeaders({ headers, ...response }: ApiResponse): ApiResponse {
  const own = Object.entries(headers ?? {}).filter(([, header]) => !('$ref' in header));
  return own.length > 0 ? { ...response, headers: Object.fromEntries(own) } : response;
}

const PARAMETERS = '#/components/parameters/';

/** References to parameters by their text, each under a name of its own. */
function nameParameters(texts: readonly string[]): Map<string, Reference> {
  const taken = new Set<string>();
  return new Map(
    texts.map((text) => {
      const { name } = JSON.parse(text) as ApiParameter;
      const plain = name.replace(/[^\w.-]/g, '_');
      let chosen = plain;
      for (let n = 2; taken.has(chosen); n++) chosen = `${plain}_${n}`;
      taken.add(chosen);
      return [text, { $ref: PARAMETERS + chosen }];
    }),
  );
}

type Components = Record<string, Record<string, unknown>>;

/** The components that the paths lead to, directly or by others; security schemes by their names. */
function keepReferred(paths: object, components: Components): Components {
  const kept: Components = Object.fromEntries(Object.keys(components).map((kind) => [kind, {}]));
  const follow = (value: unknown): void => {
    for (const [, kind, name] of JSON.stringify(value).matchAll(/"#\/components\/(\w+)\/([\w.-]+)"/g)) {
      if (kept[kind!]?.[name!] !== undefined) continue;
      kept[kind!]![name!] = components[kind!]![name!];
      follow(kept[kind!]![name!]);
    }
  };
  follow(paths);
  const named = JSON.stringify(Object.values(paths).flatMap((each) => Object.values(each as object).map(securityOf)));
  for (const [name, scheme] of Object.entries(components.securitySchemes!)) {
    if (named.includes(`"${name}"`)) kept.securitySchemes![name] = scheme;
  }
  return Object.fromEntries(Object.entries(kept).filter(([, each]) => Object.keys(each).length > 0));
}

const securityOf = ({ security }: { security?: unknown }): unknown => security;
