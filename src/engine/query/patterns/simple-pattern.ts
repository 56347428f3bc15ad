const CLASS_ESCAPES: Readonly<Record<string, string>> = {
  d: '0-9',
  w: 'A-Za-z0-9_',
  s: '\\t\\n\\v\\f\\r ',
};
const CONTROL_ESCAPES: Readonly<Record<string, string>> = {
  t: '\\t',
  n: '\\n',
  r: '\\r',
  f: '\\f',
  e: '\\x1b',
  a: '\\x07',
};
const WORD = '[A-Za-z0-9_]';
const BOUNDARY = `(?:(?<=${WORD})(?!${WORD})|(?<!${WORD})(?=${WORD}))`;
const NO_BOUNDARY = `(?:(?<=${WORD})(?=${WORD})|(?<!${WORD})(?!${WORD}))`;
const END = '(?![^\\n]|\\n[^])';
/** How many characters the built-in engine may have to look at for one position of the text. */
const MAX_STEPS = 200;

/** A pattern of the built-in engine, and how many characters it looks at for one position of a text. */
export interface SimplePattern {
  text: string;
  steps: number;
}

interface Parsed {
  text: string;
  /** How many ways there are through it. */
  ways: number;
  /** How many characters all of them look at together, an unbounded part left out. */
  steps: number;
  unbounded: number;
  /** Nothing follows the unbounded part, so that once reached it always succeeds. */
  endsUnbounded: boolean;
  anchored: boolean;
}

/**
 * The pattern for the built-in engine, or null when it is not proven that a search takes linear time: at most one
 * unbounded quantifier on a single character, which must be the last thing or follow a start anchor, no repeated
 * groups, and a bounded number of steps for all alternatives and bounded repetitions together.
 */
export function translateSimple(pattern: string, multiline: boolean, dotAll: boolean): SimplePattern | null {
  const reader = { pattern, at: 0, multiline, dotAll, depth: 0 };
  const parsed = parseAlternatives(reader);
  if (parsed === null || reader.at < pattern.length) return null;
  if (parsed.steps > MAX_STEPS || parsed.unbounded > 1) return null;
  if (parsed.unbounded === 1 && !parsed.anchored && !parsed.endsUnbounded) return null;
  return { text: parsed.text, steps: parsed.steps };
}

interface Reader {
  readonly pattern: string;
  at: number;
  readonly multiline: boolean;
  readonly dotAll: boolean;
  depth: number;
}

function parseAlternatives(reader: Reader): Parsed | null {
  const options: Parsed[] = [];
  for (;;) {
    const option = parseSequence(reader);
    if (option === null) return null;
    options.push(option);
    if (reader.pattern[reader.at] !== '|') break;
    reader.at++;
  }
  const first = options[0]!;
  if (options.length === 1) return first;
  return {
    text: options.map((option) => option.text).join('|'),
    ways: options.reduce((sum, option) => sum + option.ways, 0),
    steps: options.reduce((sum, option) => sum + option.steps, 0),
    unbounded: options.reduce((sum, option) => sum + option.unbounded, 0),
    endsUnbounded: false,
    anchored: options.every((option) => option.anchored),
  };
}

function parseSequence(reader: Reader): Parsed | null {
  const result: Parsed = { text: '', ways: 1, steps: 1, unbounded: 0, endsUnbounded: false, anchored: false };
  let first = true;
  while (reader.at < reader.pattern.length) {
    const char = reader.pattern[reader.at]!;
    if (char === '|' || char === ')') break;
    if (result.endsUnbounded) result.endsUnbounded = false;
    if (char === '(') {
      const group = parseGroup(reader);
      if (group === null) return null;
      result.text += group.text;
      result.steps += result.ways * group.steps;
      result.ways *= group.ways;
      result.unbounded += group.unbounded;
      if (first) result.anchored = group.anchored;
    } else {
      const atom = parseAtom(reader);
      if (atom === null) return null;
      if (first && atom === '^') result.anchored = true;
      const quantifier = atom.startsWith('(?') || atom === '^' ? noQuantifier(reader) : parseQuantifier(reader);
      if (quantifier === null) return null;
      result.text += atom + quantifier.text;
      result.steps += result.ways * quantifier.steps;
      result.ways *= quantifier.ways;
      if (quantifier.unbounded) {
        result.unbounded++;
        result.endsUnbounded = true;
      }
    }
    first = false;
    if (result.steps > MAX_STEPS) return null;
  }
  return result;
}

function parseGroup(reader: Reader): Parsed | null {
  if (++reader.depth > 20) return null;
  reader.at++;
  let open = '(';
  if (reader.pattern[reader.at] === '?') {
    if (reader.pattern[reader.at + 1] !== ':') return null;
    reader.at += 2;
    open = '(?:';
  }
  const inner = parseAlternatives(reader);
  if (inner === null || reader.pattern[reader.at] !== ')') return null;
  reader.at++;
  reader.depth--;
  const optional = reader.pattern[reader.at] === '?';
  if (optional) reader.at++;
  else if (/[*+?{]/.test(reader.pattern[reader.at] ?? '')) return null;
  if (optional && /[?+]/.test(reader.pattern[reader.at] ?? '')) return null;
  if (inner.unbounded > 0) return null;
  return {
    text: `${open}${inner.text})${optional ? '?' : ''}`,
    ways: inner.ways + (optional ? 1 : 0),
    steps: inner.steps,
    unbounded: 0,
    endsUnbounded: false,
    anchored: inner.anchored && !optional,
  };
}

interface Quantifier {
  readonly text: string;
  readonly ways: number;
  readonly steps: number;
  readonly unbounded: boolean;
}

const ONCE: Quantifier = { text: '', ways: 1, steps: 1, unbounded: false };

function noQuantifier(reader: Reader): Quantifier | null {
  return /[*+?{]/.test(reader.pattern[reader.at] ?? '') ? null : ONCE;
}

function parseQuantifier(reader: Reader): Quantifier | null {
  const match = /^(?:[*+?]|\{(\d{1,3})(,(\d{0,3}))?\})/.exec(reader.pattern.slice(reader.at, reader.at + 12));
  if (match === null) {
    return reader.pattern[reader.at] === '{' ? null : ONCE;
  }
  reader.at += match[0].length;
  let text = match[0];
  const next = reader.pattern[reader.at];
  if (next === '+') return null;
  if (next === '?') {
    text += '?';
    reader.at++;
  }
  if (match[1] === undefined) {
    const optional = text.startsWith('?');
    return { text, ways: optional ? 2 : 1, steps: 1, unbounded: !optional };
  }
  const low = Number(match[1]);
  if (match[2] === undefined) return { text, ways: 1, steps: low, unbounded: false };
  if (match[3] === '') return { text, ways: 1, steps: low + 1, unbounded: true };
  const high = Number(match[3]);
  return { text, ways: Math.max(1, high - low + 1), steps: high, unbounded: false };
}

function parseAtom(reader: Reader): string | null {
  const char = String.fromCodePoint(reader.pattern.codePointAt(reader.at)!);
  reader.at += char.length;
  switch (char) {
    case '.':
      return reader.dotAll ? '[^]' : '[^\\n]';
    case '^':
      return reader.multiline ? '(?<![^\\n])' : '^';
    case '$':
      return reader.multiline ? '(?![^\\n])' : END;
    case '[':
      return parseClass(reader);
    case '\\':
      return parseEscape(reader, false);
    case '*':
    case '+':
    case '?':
    case '{':
      return null;
    default:
      return /[\]}/]/.test(char) ? `\\${char}` : char;
  }
}

function parseEscape(reader: Reader, inClass: boolean): string | null {
  const char = reader.pattern[reader.at];
  if (char === undefined) return null;
  reader.at++;
  const set = CLASS_ESCAPES[char.toLowerCase()];
  if (set !== undefined) {
    const negative = char !== char.toLowerCase();
    if (!inClass) return `[${negative ? '^' : ''}${set}]`;
    return negative ? null : set;
  }
  const control = CONTROL_ESCAPES[char];
  if (control !== undefined) return control;
  if (char === 'x') {
    const hex = /^[0-9a-fA-F]{2}/.exec(reader.pattern.slice(reader.at, reader.at + 2));
    if (hex === null) return null;
    reader.at += 2;
    return `\\x${hex[0]}`;
  }
  if (char === 'p' || char === 'P') {
    const property = /^\{(\w{1,40})\}/.exec(reader.pattern.slice(reader.at, reader.at + 42));
    if (property === null || !/^(?:[LMNPSZC][a-z]?)$/.test(property[1]!)) return null;
    reader.at += property[0].length;
    return `\\${char}${property[0]}`;
  }
  if (!inClass) {
    if (char === 'b') return BOUNDARY;
    if (char === 'B') return NO_BOUNDARY;
    if (char === 'A') return '^';
    if (char === 'z') return '(?![^])';
    if (char === 'Z') return END;
  }
  if (/[A-Za-z0-9]/.test(char) || char.charCodeAt(0) > 126) return null;
  if (char === '-') return inClass ? '\\-' : '-';
  return /[$^\\.*+?()[\]{}|/]/.test(char) ? `\\${char}` : char;
}

function parseClass(reader: Reader): string | null {
  let text = '[';
  if (reader.pattern[reader.at] === '^') {
    text += '^';
    reader.at++;
  }
  let first = true;
  for (;;) {
    const code = reader.pattern.codePointAt(reader.at);
    if (code === undefined) return null;
    const char = String.fromCodePoint(code);
    reader.at += char.length;
    if (char === ']' && !first) return `${text}]`;
    first = false;
    if (char === '[' && /[:.=]/.test(reader.pattern[reader.at] ?? '')) return null;
    if (char === '\\') {
      const escape = parseEscape(reader, true);
      if (escape === null) return null;
      text += escape;
    } else {
      text += /[[\]^/]/.test(char) ? `\\${char}` : char;
    }
  }
}
