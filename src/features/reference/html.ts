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
