import type { JsonSchema } from '../../platform/schema/schema.js';
import { escapeHtml, renderLine, renderPage, renderText } from './markdown.js';
import type { ApiDocument, ApiParameter, ApiResponse, Operation } from './api-document.js';
import { renderGuideLinks } from './guides.js';
import { curlExample, scriptExample } from './request-examples.js';

type NamedSchemas = Readonly<Record<string, JsonSchema>>;

/** Named schemas are shown in place at the top and one level below, beyond that as links: some contain themselves. */
const SHOWN_LEVELS = 2;

/** A value's type in a few words, and its fields as a nested list. */
function renderSchema(schema: JsonSchema, named: NamedSchemas): string {
  const fields = renderFields(schema, named, 0);
  return `<div class="schema"><p class="shape">${renderType(schema)}${renderNotes(schema)}</p>${fields}</div>`;
}

/** `string or null`, `array of Document`, with links. */
function renderType(schema: JsonSchema): string {
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
function renderNotes(schema: JsonSchema): string {
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

type Body = NonNullable<Operation['requestBody']>;

interface Entry {
  method: string;
  path: string;
  operation: Operation;
}

/** The two pages of the document: what applications call, and what operators do. */
const DOCS_PAGES = {
  applications: { path: '/api/docs', name: 'For applications' },
  operators: { path: '/api/docs/operators', name: 'For operators' },
} as const;
export type DocsPageName = keyof typeof DOCS_PAGES;

/**
 * One half of the document as a page of HTML that needs no script to be read: operations by tag, then the schemas they
 * share. The list at its side has all operations. `base` is the path before /api, empty at the root.
 */
export function renderDocsPage(document: ApiDocument, base: string, page: DocsPageName): string {
  const { info } = document;
  const other = page === 'applications' ? 'operators' : 'applications';
  const [own, others] = [listChapters(document, page), listChapters(document, other)];
  const [here, there] = [DOCS_PAGES[page], DOCS_PAGES[other]];
  const content = own.map((chapter) => renderChapter(document, chapter)).join('\n');
  return renderPage({
    base,
    title: `${info.title} API: ${here.name.toLowerCase()}`,
    brand: `<a href="#content">${escapeHtml(info.title)} <span>API</span></a> <small>${escapeHtml(info.version)}</small>`,
    link: { to: '/api/openapi.json', text: 'openapi.json' },
    navigation: `<nav aria-label="Guides and operations"><details open><summary>Guides and operations</summary>
<div class="guides"><p class="chapter">Guides</p>
${renderGuideLinks(base)}
</div>
${own.map((chapter) => renderNavigation(chapter, '')).join('\n')}
<p class="chapter shared"><a href="#schemas">Shared schemas</a></p>
<p class="page-name"><a href="${base}${there.path}">${there.name}</a></p>
${others.map((chapter) => renderNavigation(chapter, `${base}${there.path}`)).join('\n')}
</details></nav>`,
    content: `<section class="intro">
<h1>${escapeHtml(info.title)} API: ${here.name.toLowerCase()}</h1>
${renderText(info.description)}
<p><a href="${base}${there.path}">${there.name}</a> there is a page of its own.</p>
<h2 id="guides">Guides</h2>
${renderGuideLinks(base)}
</section>
${content}
<section class="schemas" id="schemas">
<h2>Shared schemas</h2>
${renderComponents(document, content)}
</section>`,
  });
}

/** Those of operators ask for an operator's token. */
function listChapters(document: ApiDocument, page: DocsPageName): Chapter[] {
  return document.tags
    .map((tag) => ({ ...tag, entries: entriesOf(document, tag.name) }))
    .filter(({ entries }) => {
      const isOfOperators = entries.some(({ operation }) => operation.security.some((each) => 'operatorToken' in each));
      return isOfOperators === (page === 'operators');
    });
}

/** The named schemas that a page leads to, directly or by others, in the order of their names. */
function renderComponents({ components: { schemas } }: ApiDocument, content: string): string {
  const shown = new Map<string, string>();
  const add = (html: string): void => {
    for (const [, name] of html.matchAll(/href="#schema-(\w+)"/g)) {
      if (shown.has(name!)) continue;
      const rendered = renderSchema(schemas[name!]!, schemas);
      shown.set(name!, rendered);
      add(rendered);
    }
  };
  add(content);
  return [...shown]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([name, html]) =>
        `<details class="component" id="schema-${name}"><summary><code>${name}</code></summary>${html}</details>`,
    )
    .join('\n');
}

function entriesOf(document: ApiDocument, tag: string): Entry[] {
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, operation]) =>
      operation.tags.includes(tag) ? [{ method, path, operation }] : [],
    ),
  );
}

interface Chapter {
  name: string;
  description: string;
  entries: Entry[];
}

const chapterId = (name: string): string => `tag-${name.toLowerCase().replaceAll(' ', '-')}`;

/** `page` is the address of the page that has the chapter, empty for the one it is made for. */
function renderNavigation({ name, entries }: Chapter, page: string): string {
  const items = entries.map(
    ({ method, path, operation }) =>
      `<li data-of="${operation.operationId}"><a href="${page}#${operation.operationId}" title="${escapeHtml(path)}"><span class="method ${method}">${method}</span><span>${renderLine(operation.summary)}</span></a></li>`,
  );
  return `<div class="group"><p class="chapter"><a href="${page}#${chapterId(name)}">${escapeHtml(name)}</a></p>
<ul>
${items.join('\n')}
</ul></div>`;
}

function renderChapter(document: ApiDocument, { name, description, entries }: Chapter): string {
  return `<section class="chapter-body" id="${chapterId(name)}">
<h2>${escapeHtml(name)}</h2>
${renderText(description)}
${entries.map((entry) => renderOperation(document, entry)).join('\n')}
</section>`;
}

function renderOperation(document: ApiDocument, { method, path, operation }: Entry): string {
  const { operationId, summary, description, requestBody } = operation;
  const responses = Object.entries(operation.responses);
  const replies = responses.filter(([, { $ref }]) => $ref === undefined);
  const refusals = responses.filter(([, { $ref }]) => $ref !== undefined);
  const address = escapeHtml(path).replace(/\{(\w+)\}/g, '<var>{$1}</var>');
  return `<details class="operation" id="${operationId}">
<summary><span class="method ${method}">${method}</span> <code class="path">${address}</code> <span class="summary">${renderLine(summary)}</span></summary>
<div class="operation-body">
<div class="about">
${renderText(description)}
</div>
<div class="example"><h3>Example</h3><pre tabindex="0"><code>${escapeHtml(curlExample(document, method, path, operation))}</code></pre>
<details class="script"><summary>In JavaScript</summary><pre tabindex="0"><code>${escapeHtml(scriptExample(document, method, path, operation))}</code></pre></details>
<div class="try" data-path="${escapeHtml(path)}" data-method="${method}"></div></div>
<div class="text">
${renderParameters(operation.parameters)}
${requestBody ? renderBody(requestBody, document.components.schemas) : ''}
<h3>Responses</h3>
${replies.map(([status, response]) => renderReply(status, response, document.components.schemas)).join('\n')}
<h3>Errors <a href="#schema-Error">Error</a></h3>
${refusals.map(([status, { description: codes }]) => renderRefusal(status, codes)).join('\n')}
</div>
</div>
</details>`;
}

function renderParameters(parameters: readonly ApiParameter[]): string {
  if (parameters.length === 0) return '';
  const rows = parameters.map(({ name, in: place, required, schema, description, explode }) => {
    const optional = required ? '' : ' <span class="optional">optional</span>';
    // An open parameter stands for any number of parameters.
    const shown = explode ? '&lt;field&gt;' : escapeHtml(name);
    const type = explode ? '<span class="type">string</span>' : renderType(schema) + renderNotes(schema);
    const about = description && `<br>${renderLine(description)}`;
    return `<tr><th scope="row"><code class="name">${shown}</code>${optional}</th><td>${place}</td><td>${type}${about}</td></tr>`;
  });
  return `<h3>Parameters</h3>
<div class="wide" tabindex="0"><table><tbody>
${rows.join('\n')}
</tbody></table></div>`;
}

function renderBody({ required, description, content }: Body, named: NamedSchemas): string {
  return `<h3>Body${required ? '' : ' <span class="optional">optional</span>'}</h3>
${description ? renderText(description) : ''}${renderContent(content, named)}`;
}

function renderReply(status: string, { description, headers, content }: ApiResponse, named: NamedSchemas): string {
  const own = Object.entries(headers ?? {}).flatMap(([name, header]) =>
    'description' in header
      ? [`<li><code class="name">${escapeHtml(name)}</code> ${renderLine(String(header.description))}</li>`]
      : [],
  );
  const list = own.length > 0 ? `<ul class="headers">${own.join('')}</ul>` : '';
  const kind = status < '300' ? 'good' : 'else';
  return `<div class="reply ${kind}"><p>${renderStatus(status)}${renderLine(description)}</p>${list}${renderContent(content ?? {}, named)}</div>`;
}

function renderRefusal(status: string, codes: string): string {
  return `<div class="reply bad"><p>${renderStatus(status)}${renderLine(codes)}</p></div>`;
}

const renderStatus = (status: string): string => `<span class="status">${status}</span> `;

function renderContent(content: Readonly<Record<string, { schema: JsonSchema }>>, named: NamedSchemas): string {
  return Object.entries(content)
    .map(([type, { schema }]) => {
      const media = type === '*/*' ? 'any type' : type;
      const said = type === 'application/json' ? '' : `<p class="media">${escapeHtml(media)}</p>`;
      return said + renderSchema(schema, named);
    })
    .join('');
}
