/** With what every text that a pattern finds begins. */
export interface LiteralPrefix {
  readonly text: string;
  /** Every text that begins so is found. */
  readonly complete: boolean;
}

const SPECIAL = /[\\^$.|?*+()[\]{}]/;
const QUANTIFIER = /[?*+{]/;
/** Letters of another case are other characters, and some beyond ASCII are the other case of one in it. */
const CASELESS = /[ -@[-`{-~]/;

/**
 * The literal beginning of a pattern that is anchored by `^`; null when it has none that all of its matches share. Says
 * less than there is, never more.
 */
export function literalPrefix(pattern: string, options: string): LiteralPrefix | null {
  if (!pattern.startsWith('^') || /[^isu]/.test(options) || pattern.includes('|')) return null;
  const characters = [...pattern].slice(1);
  const anyCase = options.includes('i');
  let text = '';
  let at = 0;
  for (let last = 0; at < characters.length; last = at) {
    const literal = literalAt(characters, at);
    if (literal === null || (anyCase && !CASELESS.test(literal.text)) || /[\ud800-\udfff]/u.test(literal.text)) break;
    at += literal.length;
    if (at < characters.length && QUANTIFIER.test(characters[at]!)) {
      at = last;
      break;
    }
    text += literal.text;
  }
  if (text === '') return null;
  const rest = characters.slice(at).join('');
  return { text, complete: rest === '' || rest === '.*' };
}

function literalAt(characters: readonly string[], at: number): { text: string; length: number } | null {
  const first = characters[at]!;
  if (!SPECIAL.test(first)) return { text: first, length: 1 };
  const escaped = characters[at + 1];
  if (first !== '\\' || escaped === undefined || /[A-Za-z0-9]/.test(escaped) || escaped > '\x7f') return null;
  return { text: escaped, length: 2 };
}
