import type { JsonSchema } from '../../platform/schema/schema.js';
import { escapeHtml, renderLine } from './html.js';

export type NamedSchemas = Readonly<Record<string, JsonSchema>>;

/** Named schemas are shown in place at the top and one level below, beyond that as links: some contain themselves. */
const SHOWN_LEVELS = 2;

/** A value's type in a few words, and its fields as a nested list. */
export function renderSchema(schema: JsonSchema, named: NamedSchemas): string {
  const fields = renderFields(schema, named, 0);
  return `<div class="schema"><p class="shape">${renderType(schema)}${renderNotes(schema)}</p>${fields}</div>`;
}

/** `string or null`, `array of Document`, with links. */
export function renderType(schema: JsonSchema): string {
  if (typeof schema.$ref === 'string') return linkTo(schema.$ref);
  if ('const' in schema) return value(schema.const);
  if (Array.isArray(schema.enum)) return schema.enum.map(value).join(' <i>or</i> ');
  const either = schema.anyOf as JsonSchema[] | undefined;
  if (either) return either.map(renderType).join(' <i>or</i> ');
  const items = schema.items as JsonSchema | undefined;
  const types = [schema.type ?? (items ? 'array' : schema.properties ? 'object' : 'anything')].flat().map(String);
  return types
    .map((type) => (type === 'array' && items ? `array of ${renderType(items)}` : `<span class="type">${type}</span>`))
    .join(' <i>or</i> ');
}

function linkTo(ref: string): string {
  const name = escapeHtml(ref.split('/').at(-1)!);
  return `<a class="type" href="#schema-${name}">${name}</a>`;
}

const value = (each: unknown): string => `<code>${escapeHtml(JSON.stringify(each))}</code>`;

/** The limits that a schema sets, and its description. */
export function renderNotes(schema: JsonSchema): string {
  const notes = Object.entries(LIMITS).flatMap(([keyword, words]) =>
    schema[keyword] === undefined ? [] : [`${words} ${value(schema[keyword])}`],
  );
  if (typeof schema.format === 'string') notes.unshift(escapeHtml(schema.format));
  if (typeof schema.pattern === 'string') notes.push(`like <code>${escapeHtml(schema.pattern)}</code>`);
  const limits = notes.length > 0 ? ` <span class="limits">${notes.join(', ')}</span>` : '';
  const description =
    typeof schema.description === 'string' ? ` <span class="note">${renderLine(schema.description)}</span>` : '';
  return `${schema.deprecated ? ' <span class="limits">deprecated</span>' : ''}${limits}${description}`;
}

const LIMITS: Readonly<Record<string, string>> = {
  default: 'default',
  minimum: 'from',
  maximum: 'to',
  minLength: 'length from',
  maxLength: 'length to',
  minItems: 'items from',
  maxItems: 'items to',
  minProperties: 'fields from',
};

function renderFields(schema: JsonSchema, named: NamedSchemas, level: number): string {
  if (typeof schema.$ref === 'string') {
    const target = named[schema.$ref.split('/').at(-1)!];
    return target && level < SHOWN_LEVELS ? renderFields(target, named, level) : '';
  }
  const either = schema.anyOf as JsonSchema[] | undefined;
  if (either) return either.map((each) => renderFields(each, named, level)).join('');
  const items = schema.items as JsonSchema | undefined;
  if (items) return renderFields(items, named, level + 1);
  const fields = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  if (fields.length === 0) return '';
  const required = new Set(schema.required as string[] | undefined);
  const rows = fields.flatMap(([name, field]) =>
    // A field that no object has is of no use to a reader.
    field.not ? [] : [renderField(name, field, required.has(name), named, level + 1)],
  );
  const more = schema.additionalProperties === false ? '' : '<li class="more">and other fields</li>';
  return `<ul>${rows.join('')}${more}</ul>`;
}

function renderField(name: string, field: JsonSchema, isRequired: boolean, named: NamedSchemas, level: number): string {
  const optional = isRequired ? '' : ' <span class="optional">optional</span>';
  const about = `${renderType(field)}${optional}${renderNotes(field)}`;
  return `<li><code class="name">${escapeHtml(name)}</code> ${about}${renderFields(field, named, level)}</li>`;
}
