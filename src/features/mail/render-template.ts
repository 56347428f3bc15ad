import Mustache from 'mustache';
import { invalid } from '../../errors.js';

/** The texts of a mail, before or after its placeholders are filled in. */
export interface MailText {
  subject: string;
  html?: string;
  text?: string;
}

const MAX_RENDERED_CHARACTERS = 500_000;
/** The most placeholders of one part of a mail: reading them takes time before the first is filled in. */
const MAX_PLACEHOLDERS = 5000;
/** Characters: an escaped text is up to six times as long, which is to be seen before it is all written. */
const ESCAPED_AT_ONCE = 10_000;
const URL_NAME = /(^|[._-])(url|link|href)$|(Url|Link|Href)$/;
const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '/': '&#x2F;',
  '`': '&#x60;',
};

const SCHEME = /^[a-z][a-z0-9+.-]*\s*:/i;
const DANGEROUS_SCHEME = /^(javascript|data|vbscript|file)\s*:/i;

/**
 * Browsers drop tabs and line ends anywhere in an address and controls and blanks before it; readers of mail drop more,
 * so all of it goes before an address is judged.
 */
function asBrowsersRead(value: string): string {
  return value.replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028\u2029\u2060\ufeff]/g, '').trimStart();
}

type Target = 'html' | 'text';

/**
 * Fills in `{{x}}` (escaped in HTML), `{{{x}}}` (as it is) and `{{a.b}}` (nested), own properties only (rest-api.md
 * 4.4). A name without a value becomes nothing; sections, partials and functions do not exist here: 400.
 */
export function renderTemplate(template: MailText, variables: Readonly<Record<string, unknown>>): MailText {
  const rendered: MailText = { subject: fill(template.subject, variables, 'text') };
  if (template.html !== undefined) rendered.html = fill(template.html, variables, 'html');
  if (template.text !== undefined) rendered.text = fill(template.text, variables, 'text');
  return rendered;
}

/**
 * 400 when a template holds anything but text and variables, so that a bad one is refused when it is set and not when
 * it is sent.
 */
export function checkTemplate(template: MailText): void {
  for (const part of [template.subject, template.html, template.text]) if (part !== undefined) parse(part);
}

type Token = [kind: string, value: string];

function parse(source: string): Token[] {
  if (hasMore(source, '{{', MAX_PLACEHOLDERS)) {
    throw invalid('INVALID_TEMPLATE', `A part of a mail may hold at most ${MAX_PLACEHOLDERS} placeholders`);
  }
  let tokens: Token[];
  try {
    // The library's types call a token a list of texts; its documentation says what stands where.
    tokens = Mustache.parse(source) as unknown as Token[];
  } catch (error) {
    throw invalid('INVALID_TEMPLATE', `The template cannot be read: ${(error as Error).message}`);
  }
  // The library keeps every text it has parsed, permanently.
  Mustache.clearCache();
  const odd = tokens.find(([kind]) => !['text', 'name', '&', '!'].includes(kind));
  if (odd) {
    throw invalid(
      'INVALID_TEMPLATE',
      `The template may hold {{name}}, {{{name}}} and {{a.b}} only, not {{${odd[0]}${odd[1]}}}`,
    );
  }
  return tokens;
}

/** True when a text stands in another more often than a limit. */
function hasMore(source: string, text: string, most: number): boolean {
  let count = 0;
  for (let at = source.indexOf(text); at >= 0; at = source.indexOf(text, at + text.length)) {
    if (++count > most) return true;
  }
  return false;
}

function fill(source: string, variables: Readonly<Record<string, unknown>>, target: Target): string {
  const presented = new Map<string, string>();
  let result = '';
  for (const [kind, value] of parse(source)) {
    if (kind === '!') continue;
    const room = MAX_RENDERED_CHARACTERS - result.length;
    if (kind === 'text') {
      result += value;
    } else {
      // Once for each name: judging a long value takes time even where nothing of it is written.
      const key = kind + value;
      const text =
        presented.get(key) ?? present(value, findValue(variables, value), kind === '&' || target === 'text', room);
      presented.set(key, text);
      result += text;
    }
    if (result.length > MAX_RENDERED_CHARACTERS) throw tooLarge();
  }
  return result;
}

const tooLarge = (): Error => invalid('INVALID_TEMPLATE', 'The rendered mail is too large');

function findValue(variables: Readonly<Record<string, unknown>>, path: string): unknown {
  let value: unknown = variables;
  for (const part of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<string, unknown>)[part];
  }
  return value;
}

/** The value as it is written; refused when that is sure to have more characters than there is room for. */
function present(name: string, value: unknown, raw: boolean, room: number): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string') return '';
  const text = URL_NAME.test(name) || SCHEME.test(asBrowsersRead(value)) ? safeUrl(name, value) : value;
  if (text.length > room) throw tooLarge();
  return raw ? text : escape(text, room);
}

function escape(text: string, room: number): string {
  let escaped = '';
  for (let at = 0; at < text.length; at += ESCAPED_AT_ONCE) {
    const part = text.slice(at, at + ESCAPED_AT_ONCE);
    escaped += part.replace(/[&<>"'/`]/g, (character) => ESCAPES[character]!);
    if (escaped.length > room) throw tooLarge();
  }
  return escaped;
}

/**
 * A variable that is named like an address must be one, and http or https: anything else becomes `#`. Other texts only
 * lose dangerous schemes.
 */
function safeUrl(name: string, value: string): string {
  if (!URL_NAME.test(name)) return DANGEROUS_SCHEME.test(asBrowsersRead(value)) ? '#' : value;
  if (!URL.canParse(value)) return '#';
  const url = new URL(value);
  return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : '#';
}
