/** The tokens that may come next in a JSON text. */
type Expected = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end' | 'nothing';

const SPACE = /[ \t\n\r]*/y;
// In the string, the parts between escapes are one step each: a long text costs no more than its length.
const TOKEN =
  /[{}[\],:]|"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;

/**
 * Where a text stops being JSON, counted in characters from 0; its length when it ends too soon, null when it is JSON.
 */
export function findJsonMistake(text: string): number | null {
  const closing: string[] = [];
  let expected: Expected = 'value';
  for (let at = endOf(SPACE, text, 0); at < text.length;) {
    const end = endOf(TOKEN, text, at);
    if (end === at) return at;
    const next = afterToken(expected, text[at]!, closing);
    if (next === null) return at;
    expected = next;
    at = endOf(SPACE, text, end);
  }
  return expected === 'nothing' ? null : text.length;
}

/** Finds what may follow a token, known by its first character; null for a token that may not be there. */
function afterToken(expected: Expected, token: string, closing: string[]): Expected | null {
  const isValue = expected === 'value' || expected === 'value or end';
  switch (token) {
    case '{':
    case '[':
      if (!isValue) return null;
      closing.push(token === '{' ? '}' : ']');
      return token === '{' ? 'key or end' : 'value or end';
    case '}':
    case ']':
      if (!expected.endsWith(' or end') || closing.pop() !== token) return null;
      return closing.length === 0 ? 'nothing' : 'comma or end';
    case ',':
      if (expected !== 'comma or end') return null;
      return closing.at(-1) === '}' ? 'key' : 'value';
    case ':':
      return expected === 'colon' ? 'value' : null;
    case '"':
      if (expected === 'key' || expected === 'key or end') return 'colon';
  }
  if (!isValue) return null;
  return closing.length === 0 ? 'nothing' : 'comma or end';
}

/** Where a match that begins there ends; there itself when there is none. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
