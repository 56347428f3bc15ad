import { isDeepStrictEqual } from 'node:util';
import type { JsonSchema } from '../../platform/schema/schema.js';

/** The named schemas of a document while it is built. */
export interface Components {
  readonly schemas: Record<string, JsonSchema>;
  /**
   * The schema with every titled part of it replaced by a reference to a component of that name. Throws when two
   * different schemas share a title.
   */
  place(schema: JsonSchema): JsonSchema;
}

/** `prefix` is where references look for them. */
export function openComponents(prefix = '#/components/schemas/'): Components {
  const schemas: Record<string, JsonSchema> = {};
  const add = (name: string, schema: JsonSchema): JsonSchema => {
    const known = schemas[name];
    if (!known) schemas[name] = schema;
    else if (!isDeepStrictEqual(known, schema)) throw new Error(`two schemas are named ${name}`);
    return { $ref: prefix + name };
  };
  const place = (value: unknown, name?: string): unknown => {
    if (Array.isArray(value)) return value.map((item) => place(item));
    if (typeof value !== 'object' || value === null) return value;
    const { $defs, texts: _texts, title = name, ...own } = value as JsonSchema & { $defs?: Record<string, JsonSchema> };
    const schema = keepOwnKeywords(own);
    for (const [part, definition] of Object.entries($defs ?? {})) place(definition, componentName(part));
    const placed: Record<string, unknown> = Object.fromEntries(
      Object.entries(schema).map(([keyword, part]) => [
        keyword,
        keyword === '$ref' ? placeRef(part as string) : placePart(keyword, part),
      ]),
    );
    // Said aloud, since generators of clients take silence for a closed object.
    if (placed.type === 'object' && placed.maxProperties !== 0 && placed.allOf === undefined) {
      placed.additionalProperties ??= true;
    }
    return title === undefined ? placed : add(title, placed);
  };
  const placePart = (keyword: string, part: unknown): unknown => {
    // Names of fields are not keywords, and examples are not schemas.
    if (VALUES.has(keyword)) return part;
    if (keyword === 'properties') {
      return Object.fromEntries(
        // As an object, since generators of clients look for keywords in each.
        Object.entries(part as object).map(([field, inner]) => [field, inner === false ? { not: {} } : place(inner)]),
      );
    }
    return place(part);
  };
  return { schemas, place: (schema) => place(schema) as JsonSchema };
}

/** The keywords of `check-schema.ts` as sentences: strict validators and linters refuse what they do not know. */
const SENTENCES: Readonly<Record<string, (limit: unknown) => string>> = {
  minBytes: (limit) => `At least ${String(limit)} bytes of UTF-8.`,
  maxBytes: (limit) => `At most ${String(limit)} bytes of UTF-8.`,
  oneLine: () => 'One line.',
  notBlank: () => 'Not only spaces.',
  wellFormed: () => 'No half of a surrogate pair.',
};

function keepOwnKeywords(schema: JsonSchema): JsonSchema {
  const own = Object.keys(SENTENCES).filter((keyword) => schema[keyword] !== undefined && schema[keyword] !== false);
  if (own.length === 0 || schema.type === 'object') return schema;
  const rest = Object.fromEntries(Object.entries(schema).filter(([keyword]) => !own.includes(keyword)));
  const said = own.map((keyword) => SENTENCES[keyword]!(schema[keyword]));
  const before = typeof schema.description === 'string' ? [schema.description.replace(/[^.]$/, '$&.')] : [];
  return { ...rest, description: [...before, ...said].join(' ') };
}

const VALUES: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples', 'required', 'type']);

/** Parts of schemas that check bodies are referred to within them. */
function placeRef(ref: string): string {
  const part = /^#\/\$defs\/(\w+)$/.exec(ref)?.[1];
  return part === undefined ? ref : `#/components/schemas/${componentName(part)}`;
}

const componentName = (part: string): string => part[0]!.toUpperCase() + part.slice(1);
