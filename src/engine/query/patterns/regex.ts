import { RE2JS } from 're2js';
import { badValue, refusal, CODES } from '../../errors.js';
import { translateSimple } from './simple-pattern.js';
import { openTextSearch } from './text-search.js';
import { Stopwatch } from '../values/stopwatch.js';

/** One match: UTF-16 offsets, and the groups' texts (null where a group took no part). */
export interface Found {
  readonly start: number;
  readonly end: number;
  readonly groups: readonly (string | null)[];
}

/**
 * A compiled pattern whose time is linear in the text, whatever the pattern; what would still take long is refused with
 * 50 (`meterSearch`).
 */
export interface Pattern {
  test(text: string): boolean;
  find(text: string, from: number): Found | null;
}

const MAX_PATTERN_LENGTH = 32_764;
const MAX_CACHED = 200;
/**
 * Steps (characters of a text times those that a pattern may look at for each) that the built-in engine, which nobody
 * can interrupt, takes in a few milliseconds.
 */
const MAX_NATIVE_STEPS = 4_000_000;
const cache = new Map<string, Pattern>();

/**
 * Compiles a PCRE pattern with options out of `imsxu`. Patterns proven harmless run on the built-in engine, all others
 * on a linear-time one. Look-around, back-references and possessive quantifiers are refused with 51091, an unknown
 * option with 51108.
 */
export function compilePattern(pattern: string, options: string): Pattern {
  const key = `${options}/${pattern}`;
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  if (/[^imsxu]/.test(options)) throw refusal(51108, `invalid flag in regex options: ${options}`);
  if (pattern.includes('\0')) throw badValue('Regular expression cannot contain an embedded null byte');
  if (pattern.length > MAX_PATTERN_LENGTH) throw refusal(51091, 'Regular expression is invalid: pattern is too long');
  const compiled = build(pattern, new Set(options));
  if (cache.size >= MAX_CACHED) cache.delete(cache.keys().next().value!);
  cache.set(key, compiled);
  return compiled;
}

function build(pattern: string, flags: Set<string>): Pattern {
  let body = pattern;
  const inline = /^\(\?([imsx]+)\)/.exec(body);
  if (inline !== null) {
    for (const flag of inline[1]!) flags.add(flag);
    body = body.slice(inline[0].length);
  }
  if (flags.has('x')) body = stripComments(body);
  const simple = translateSimple(body, flags.has('m'), flags.has('s'));
  if (simple !== null) {
    const letters = `u${flags.has('i') ? 'i' : ''}`;
    const { text, steps } = simple;
    try {
      const native = nativePattern(new RegExp(text, letters), new RegExp(text, `g${letters}`));
      return whereHarmless(native, steps, text.includes('(?<'), () => linearPattern(body, flags));
    } catch {
      // What the built-in engine does not take, the linear one may; if not, it says why.
    }
  }
  return linearPattern(body, flags);
}

function nativePattern(tester: RegExp, finder: RegExp): Pattern {
  return {
    test: (text) => tester.test(text),
    find(text, from) {
      finder.lastIndex = from;
      const match = finder.exec(text);
      if (match === null) return null;
      return {
        start: match.index,
        end: match.index + match[0].length,
        groups: match.slice(1).map((group: string | undefined) => group ?? null),
      };
    },
  };
}

const SURROGATES = /[\ud800-\udfff]/;

/**
 * Sends a text to the linear engine when the built-in one would take too long, and, with a look-behind, when it has
 * astral characters: V8 lets such a pattern match between the two halves of one.
 */
function whereHarmless(native: Pattern, steps: number, looksBehind: boolean, open: () => Pattern): Pattern {
  let linear: Pattern | undefined;
  const fit = (text: string): Pattern => {
    const work = text.length * steps;
    if (work <= MAX_NATIVE_STEPS && !(looksBehind && SURROGATES.test(text))) {
      if (work > UNWATCHED_STEPS) meterSearch(work >> 4);
      return native;
    }
    return (linear ??= open());
  };
  return { test: (text) => fit(text).test(text), find: (text, from) => fit(text).find(text, from) };
}

function linearPattern(body: string, flags: ReadonlySet<string>): Pattern {
  const bits =
    (flags.has('i') ? RE2JS.CASE_INSENSITIVE : 0) |
    (flags.has('s') ? RE2JS.DOTALL : 0) |
    (flags.has('m') ? RE2JS.MULTILINE : 0);
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(translateEnds(body, flags.has('m')), bits);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw refusal(
      51091,
      `Regular expression is invalid or uses what this engine refuses (look-around, back-references): ${reason}`,
    );
  }
  const size = compiled.programSize();
  const isShort = (text: string): boolean => {
    const steps = text.length * size;
    meterSearch(steps);
    return steps <= UNWATCHED_STEPS;
  };
  const test = (text: string): boolean => compiled.test(isShort(text) ? text : watchText(text));
  return {
    test,
    find(text, from) {
      // Whether there is a match is found out much faster than where.
      if (from > text.length || (from === 0 && !test(text))) return null;
      const matcher = compiled.matcher(isShort(text) ? text : watchText(text));
      if (!matcher.find(from)) return null;
      const groups: (string | null)[] = [];
      for (let i = 1; i <= matcher.groupCount(); i++) {
        const start = matcher.start(i);
        groups.push(start < 0 ? null : text.slice(start, matcher.end(i)));
      }
      return { start: matcher.start(), end: matcher.end(), groups };
    },
  };
}

/** Extended mode: white space and comments outside classes do not count. */
function stripComments(pattern: string): string {
  let out = '';
  let inClass = false;
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i]!;
    if (char === '\\') {
      out += char + (pattern[i + 1] ?? '');
      i++;
    } else if (inClass) {
      inClass = char !== ']';
      out += char;
    } else if (char === '#') {
      while (i + 1 < pattern.length && pattern[i + 1] !== '\n') i++;
    } else if (!/\s/.test(char)) {
      inClass = char === '[';
      out += char;
    }
  }
  return out;
}

/**
 * PCRE's `$` and `\Z` also match before a final newline; the linear engine has neither, so the newline is taken along.
 */
function translateEnds(pattern: string, multiline: boolean): string {
  let out = '';
  let inClass = false;
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i]!;
    if (char === '\\') {
      const next = pattern[i + 1] ?? '';
      i++;
      if (inClass) {
        out += char + next;
      } else if (next === 'Z') {
        out += '(?:\\n?\\z)';
      } else if (next === 'h') {
        out += '[\\t \\xA0]';
      } else if (next === 'R') {
        out += '(?:\\r\\n|[\\n-\\r\\x{85}\\x{2028}\\x{2029}])';
      } else if (next === 'Q') {
        const close = pattern.indexOf('\\E', i);
        const stop = close < 0 ? pattern.length : close;
        out += pattern.slice(i + 1, stop).replace(/[^A-Za-z0-9\u0080-\uffff]/g, '\\$&');
        i = close < 0 ? stop : stop + 1;
      } else {
        out += char + next;
      }
    } else if (inClass) {
      inClass = char !== ']';
      out += char;
    } else if (char === '[') {
      inClass = true;
      out += char;
      while (pattern[i + 1] === '^' || (pattern[i + 1] === ']' && /\[\^?$/.test(out))) {
        const next = pattern[++i]!;
        out += next === ']' ? '\\]' : next;
      }
    } else if (char === '$' && !multiline) {
      out += '(?:\\n?\\z)';
    } else {
      out += char;
    }
  }
  return out;
}

/**
 * Steps (characters times instructions of a program) that take at most a few milliseconds: that much is searched
 * without looking at a clock.
 */
const UNWATCHED_STEPS = 200_000;
const CHARACTERS_PER_LOOK = 64;

const watch = new Stopwatch();
let isRunning = false;
let steps = 0;

/**
 * Counts the steps of a search before it begins. All searches of one turn of the event loop together may take no longer
 * than the work on one document: 50 beyond it.
 */
function meterSearch(count: number): void {
  if (!isRunning) {
    isRunning = true;
    steps = 0;
    watch.restart();
    setImmediate(() => (isRunning = false));
  }
  steps += count;
  if (steps > UNWATCHED_STEPS) look();
}

function look(): void {
  if (watch.isOver()) throw refusal(CODES.MaxTimeMSExpired, 'looking for a pattern in so long a text takes too long');
}

/** A text that looks at the clock while it is read by `charCodeAt` and `indexOf`, as the linear engine does. */
class WatchedText extends String {
  private left = CHARACTERS_PER_LOOK;

  override charCodeAt(at: number): number {
    if (--this.left === 0) {
      this.left = CHARACTERS_PER_LOOK;
      look();
    }
    return super.charCodeAt(at);
  }

  override indexOf(wanted: string, from = 0): number {
    return openTextSearch(wanted).indexIn(this.valueOf(), from);
  }
}

/** The same text for the linear engine, which ends with 50 when the time of this turn is over. */
function watchText(text: string): string {
  // The matcher uses of a text only what the class has.
  return new WatchedText(text) as unknown as string;
}
