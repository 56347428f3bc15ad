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
