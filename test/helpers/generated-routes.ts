import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { ROUTE_LISTS } from '../../src/api.js';
import { buildApiDocument, type Operation } from '../../src/features/reference/api-document.js';
import type { JsonSchema } from '../../src/platform/schema/schema.js';

/** What is open to operators. */
const OF_OPERATORS = /^\/api\/(admin|projects)\b/;

type Schema = boolean | JsonSchema;

/**
 * The operators' routes as types. The document is first told as schemas, one for each route: the generator would write
 * all headers and refusals of each, of which the console asks for none.
 */
export async function renderConsoleRoutes(): Promise<string> {
  const { paths, components } = buildApiDocument(ROUTE_LISTS, '0');
  const routes = Object.entries(paths)
    .filter(([path]) => OF_OPERATORS.test(path))
    .flatMap(([path, operations]) =>
      Object.entries(operations).map(
        ([method, operation]) => [`${method.toUpperCase()} ${path}`, describe(operation)] as const,
      ),
    );
  const schemas: Record<string, Schema> = { ApiRoutes: object(Object.fromEntries(routes)) };
  for (const name of ['ApiRoutes', 'Error']) place(schemas, name, components.schemas);
  const document = { openapi: '3.1.0', info: { title: 'bsvc', version: '0' }, paths: {}, components: { schemas } };
  // The generator's own type of a document knows no schema that is true or false.
  const made = astToString(
    await openapiTS(document as unknown as OpenAPI3, {
      defaultNonNullable: false,
      emptyObjectsUnknown: true,
      alphabetize: true,
    }),
  );
  const text = /export interface components \{\n {4}schemas: (\{[^]*?\n {4}\});/.exec(made)![1]!;
  const own = text.replaceAll('components["schemas"]', 'ApiSchemas').replace(/^ *\/\*\*[^]*?\*\/\n/gm, '');
  return `export interface ApiSchemas ${own}\n`;
}

function describe({ parameters, requestBody, responses }: Operation): JsonSchema {
  const body = requestBody?.content['application/json'];
  const form = requestBody?.content['multipart/form-data'];
  const data = dataOf(responses);
  return object(
    {
      ...(parameters.some((parameter) => parameter.in === 'query') && { query: queryOf(parameters) }),
      ...(body && { body: body.schema }),
      ...(form && { form: form.schema }),
      data: data.length > 1 ? { anyOf: data } : (data[0] ?? { not: {} }),
    },
    [...(data.length > 0 ? ['data'] : []), ...(requestBody?.required ? ['body', 'form'] : [])],
  );
}

/** All that is left out may be; a parameter that stands for any number of them opens the query. */
function queryOf(parameters: Operation['parameters']): JsonSchema {
  const asked = parameters.filter((parameter) => parameter.in === 'query');
  const named = asked.filter(({ explode }) => !explode).map(({ name, schema }) => [name, schema] as const);
  return { ...object(Object.fromEntries(named), []), additionalProperties: named.length < asked.length };
}

/** Of each answer that is none of a refusal; of two with the same once. */
function dataOf(responses: Operation['responses']): JsonSchema[] {
  const all = Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .flatMap(([, { content }]) => {
      const properties = content?.['application/json']?.schema.properties as Record<string, JsonSchema> | undefined;
      return properties?.data ? [properties.data] : [];
    });
  return [...new Map(all.map((data) => [JSON.stringify(data), data])).values()];
}

const object = (properties: Record<string, JsonSchema>, required = Object.keys(properties)): JsonSchema => ({
  type: 'object',
  properties,
  required: required.filter((name) => name in properties),
  additionalProperties: false,
});

/** Adds the components that a schema names, all without what types do not say. */
function place(schemas: Record<string, Schema>, name: string, known: Record<string, JsonSchema>): void {
  const schema = (schemas[name] = bare(schemas[name] ?? known[name]!));
  for (const [, named] of JSON.stringify(schema).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    if (!Object.hasOwn(schemas, named!)) place(schemas, named!, known);
  }
}

const KEPT = new Set(['$ref', 'type', 'enum', 'const', 'required']);
const HOLDING = ['items', 'additionalProperties'];
const LISTING = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];

function bare(schema: Schema): Schema {
  if (typeof schema === 'boolean') return schema;
  if ('not' in schema && Object.keys(schema).length === 1) return false;
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]): [string, unknown][] => {
      if (KEPT.has(key)) return [[key, value]];
      if (HOLDING.includes(key)) return [[key, bare(value as Schema)]];
      if (LISTING.includes(key)) return [[key, (value as Schema[]).map(bare)]];
      if (key !== 'properties') return [];
      const named = Object.entries(value as Record<string, Schema>).map(([name, each]) => [name, bare(each)]);
      return [[key, Object.fromEntries(named)]];
    }),
  );
}
