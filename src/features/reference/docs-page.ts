import type { JsonSchema } from '../../platform/schema/schema.js';
import type { ApiDocument, ApiParameter, ApiResponse, Operation } from './api-document.js';
import { renderNotes, renderSchema, renderType, type NamedSchemas } from './docs-schema.js';
import { renderGuideLinks } from './guides.js';
import { escapeHtml, renderLine, renderPage, renderText } from './html.js';
import { curlExample, scriptExample } from './request-examples.js';

type Body = NonNullable<Operation['requestBody']>;

interface Entry {
  method: string;
  path: string;
  operation: Operation;
}

/**
 * The document as one page of HTML that needs no script to be read: operations by tag, then the schemas they share.
 * `base` is the path before /api, empty at the root.
 */
export function renderDocsPage(document: ApiDocument, base: string): string {
  const { info, tags, components } = document;
  const chapters = tags.map((tag) => ({ ...tag, entries: entriesOf(document, tag.name) }));
  return renderPage({
    base,
    title: `${info.title} API`,
    brand: `<a href="#content">${escapeHtml(info.title)} <span>API</span></a> <small>${escapeHtml(info.version)}</small>`,
    link: { to: '/api/openapi.json', text: 'openapi.json' },
    navigation: `<nav aria-label="Guides and operations"><details open><summary>Guides and operations</summary>
<div class="guides"><p class="chapter">Guides</p>
${renderGuideLinks(base)}
</div>
${chapters.map(renderNavigation).join('\n')}
<p class="chapter shared"><a href="#schemas">Shared schemas</a></p>
</details></nav>`,
    content: `<section class="intro">
<h1>${escapeHtml(info.title)} API</h1>
${renderText(info.description)}
<h2 id="guides">Guides</h2>
${renderGuideLinks(base)}
</section>
${chapters.map((chapter) => renderChapter(document, chapter)).join('\n')}
<section class="schemas" id="schemas">
<h2>Shared schemas</h2>
${Object.entries(components.schemas)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(
    ([name, schema]) =>
      `<details class="component" id="schema-${name}"><summary><code>${name}</code></summary>${renderSchema(schema, components.schemas)}</details>`,
  )
  .join('\n')}
</section>`,
  });
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

function renderNavigation({ name, entries }: Chapter): string {
  const items = entries.map(
    ({ method, operation }) =>
      `<li data-of="${operation.operationId}"><a href="#${operation.operationId}"><span class="method ${method}">${method}</span>${renderLine(operation.summary)}</a></li>`,
  );
  return `<div class="group"><p class="chapter"><a href="#${chapterId(name)}">${escapeHtml(name)}</a></p>
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
    // An open parameter stands for many, of any name.
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
