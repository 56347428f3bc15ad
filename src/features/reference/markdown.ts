const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text as it may stand anywhere in a page, attributes included. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => ESCAPES[sign]!);
}

/** A line of a description: `code` and **strong** alone have a meaning. */
export function renderLine(text: string): string {
  return escapeHtml(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>');
}

/** Paragraphs, which empty lines separate. */
export function renderText(text: string): string {
  return text
    .split('\n\n')
    .map((paragraph) => `<p>${renderLine(paragraph)}</p>`)
    .join('\n');
}

interface DocsPage {
  /** The path before /api, empty at the root. */
  base: string;
  title: string;
  /** What stands at the left of the head, as HTML. */
  brand: string;
  /** A link at its right. */
  link: { to: string; text: string };
  navigation: string;
  /** What `<main>` holds. */
  content: string;
  kind?: 'guide';
}

/** A page of the docs, which can be read without its script; the script adds the search over guides and operations. */
export function renderPage({ base, title, brand, link, navigation, content, kind }: DocsPage): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="stylesheet" href="${base}/api/docs/page.css">
<script src="${base}/api/docs/page.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<p class="brand">${brand}</p>
<form class="search" role="search" hidden><input type="search" id="search" placeholder="Search ( / )" aria-label="Search guides and operations" autocomplete="off" spellcheck="false"></form>
<p class="source"><a href="${base}${link.to}">${escapeHtml(link.text)}</a></p>
</header>
${navigation}
<main id="content"${kind ? ` class="${kind}"` : ''}>
<section class="found" aria-label="Found elsewhere" hidden></section>
<p class="none" role="status" hidden>Nothing found.</p>
${content}
</main>
</body>
</html>
`;
}

/** A part of a text of Markdown as HTML, with the line behind it. */
interface Part {
  html: string;
  next: number;
}

type Read = (lines: readonly string[], at: number, link: Link) => Part | null;
/** The address in the page for one in the text. */
type Link = (target: string) => string;

/**
 * The Markdown that the guides use as HTML: headings, paragraphs, flat lists, tables, fenced code, comments; in lines
 * `code`, **strong** and links. Anything else is shown as it is written; HTML is escaped.
 */
export function renderMarkdown(text: string, link: Link): string {
  const lines = text.split('\n');
  const parts: string[] = [];
  for (let at = 0; at < lines.length;) {
    const { html, next } = readPart(lines, at, link);
    parts.push(html);
    at = next;
  }
  return parts.filter((html) => html !== '').join('\n');
}

function readPart(lines: readonly string[], at: number, link: Link): Part {
  for (const read of BLOCKS) {
    const part = read(lines, at, link);
    if (part) return part;
  }
  return readParagraph(lines, at, link);
}

const readNothing: Read = (lines, at) =>
  lines[at]!.trim() === '' || /^<!--.*-->$/.test(lines[at]!) ? { html: '', next: at + 1 } : null;

const readHeading: Read = (lines, at, link) => {
  const found = /^(#{1,3}) (.+)$/.exec(lines[at]!);
  if (!found) return null;
  const [, marks = '', title = ''] = found;
  return {
    html: `<h${marks.length} id="${headingId(title)}">${renderSpans(title, link)}</h${marks.length}>`,
    next: at + 1,
  };
};

/** The id of a heading, as the pages of repositories name them. */
export function headingId(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-');
}

const readCode: Read = (lines, at) => {
  const fence = /^```(\w*)$/.exec(lines[at]!);
  if (!fence) return null;
  const end = lines.indexOf('```', at + 1);
  const next = end < 0 ? lines.length : end;
  const code = escapeHtml(lines.slice(at + 1, next).join('\n'));
  const kind = fence[1] === 'text' ? 'output' : 'example';
  return { html: `<div class="${kind}"><pre tabindex="0"><code>${code}</code></pre></div>`, next: next + 1 };
};

const readList: Read = (lines, at, link) => {
  const item = [/^- (.+)$/, /^\d+\. (.+)$/].find((each) => each.test(lines[at]!));
  if (!item) return null;
  const items: string[] = [];
  let next = at;
  for (; next < lines.length; next++) {
    const [, first] = item.exec(lines[next]!) ?? [];
    // What a line begins and the next one goes on with, below its first word.
    const [, more] = /^ {2,}(\S.*)$/.exec(lines[next]!) ?? [];
    if (first !== undefined) items.push(first);
    else if (more !== undefined) items.push(`${items.pop()!} ${more}`);
    else break;
  }
  const name = lines[at]!.startsWith('-') ? 'ul' : 'ol';
  return {
    html: `<${name}>\n${items.map((text) => `<li>${renderSpans(text, link)}</li>`).join('\n')}\n</${name}>`,
    next,
  };
};

const readTable: Read = (lines, at, link) => {
  if (!lines[at]!.startsWith('|') || !/^\|[ |:-]+\|$/.test(lines[at + 1] ?? '')) return null;
  const end = lines.findIndex((line, index) => index > at && !line.startsWith('|'));
  const next = end < 0 ? lines.length : end;
  const row = (line: string, cell: 'th' | 'td'): string =>
    `<tr>${splitRow(line)
      .map((text) => `<${cell}>${renderSpans(text, link)}</${cell}>`)
      .join('')}</tr>`;
  const body = lines.slice(at + 2, next).map((line) => row(line, 'td'));
  const head = `<thead>${row(lines[at]!, 'th')}</thead>`;
  return {
    html: `<div class="wide" tabindex="0"><table>${head}<tbody>\n${body.join('\n')}\n</tbody></table></div>`,
    next,
  };
};

function splitRow(line: string): string[] {
  return line
    .slice(1, line.lastIndexOf('|'))
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}

const BLOCKS: readonly Read[] = [readNothing, readHeading, readCode, readList, readTable];

function readParagraph(lines: readonly string[], at: number, link: Link): Part {
  const rest = lines.findIndex((line, index) => index > at && /^(|#.*|```.*|- .*|\|.*)$/.test(line));
  const next = rest < 0 ? lines.length : rest;
  return { html: `<p>${renderSpans(lines.slice(at, next).join(' '), link)}</p>`, next };
}

/** Links, and between them what a line of the reference may hold; a link's words may be `code`. */
function renderSpans(text: string, link: Link): string {
  return text
    .split(/(\[[^\]]+\]\([^)\s]+\))/)
    .map((part) => {
      const found = /^\[([^\]]+)\]\(([^)\s]+)\)$/.exec(part);
      return found ? `<a href="${escapeHtml(link(found[2]!))}">${renderLine(found[1]!)}</a>` : renderLine(part);
    })
    .join('');
}
