/** Inclusive ranges of code points. */
export type CharSet = readonly (readonly [number, number])[];

/**
 * One place of the pattern that takes a character, and the places that can take the next one: once for every way to get
 * there.
 */
export interface PatternPosition {
  set: CharSet;
  next: PatternPosition[];
  index: number;
}

/** The facts that the analysis needs about a part of the pattern. */
interface Part {
  nullable: boolean;
  /** Positions once its counts are written out. */
  size: number;
  first: PatternPosition[];
  last: PatternPosition[];
}

const ANY: CharSet = [[0, 0x10ffff]];
const DIGITS: CharSet = [[48, 57]];
const WORD: CharSet = [
  [48, 57],
  [65, 90],
  [95, 95],
  [97, 122],
];
const SPACE: CharSet = [
  [9, 13],
  [32, 32],
];
const CLASS_ESCAPES: Readonly<Record<string, CharSet>> = {
  d: DIGITS,
  w: WORD,
  s: SPACE,
  D: complement(DIGITS),
  W: complement(WORD),
  S: complement(SPACE),
};
const CONTROL_ESCAPES: Readonly<Record<string, number>> = { a: 7, f: 12, t: 9, n: 10, r: 13, v: 11 };

/** Copies of one character that are looked at one by one; more count as a loop. */
const MAX_COPIES = 16;
/** Pairs of a place and one that can follow it, of one pattern: what its analysis costs grows with them. */
const MAX_EDGES = 2000;

/**
 * Reads a pattern of RE2 syntax into its positions. Characters are taken without regard to case; what is not worth
 * telling apart counts as any character.
 */
export class PatternReader {
  readonly #chars: string[];
  readonly positions: PatternPosition[] = [];
  /** There are more edges than are looked at; then they are not complete. */
  isTangled = false;
  #edges = 0;
  #at = 0;

  constructor(pattern: string) {
    this.#chars = [...pattern];
  }

  read(): Part {
    return this.#alternatives();
  }

  #link(from: readonly PatternPosition[], to: readonly PatternPosition[]): void {
    this.#edges += from.length * to.length;
    if (this.#edges > MAX_EDGES) this.isTangled = true;
    else for (const position of from) position.next.push(...to);
  }

  #join(left: Part, right: Part): Part {
    this.#link(left.last, right.first);
    return {
      nullable: left.nullable && right.nullable,
      size: left.size + right.size,
      first: left.nullable ? [...left.first, ...right.first] : left.first,
      last: right.nullable ? [...left.last, ...right.last] : right.last,
    };
  }

  #alternatives(): Part {
    let part = this.#sequence();
    while (this.#chars[this.#at] === '|') {
      this.#at++;
      const other = this.#sequence();
      part = {
        nullable: part.nullable || other.nullable,
        size: part.size + other.size + 1,
        first: [...part.first, ...other.first],
        last: [...part.last, ...other.last],
      };
    }
    return part;
  }

  #sequence(): Part {
    let part: Part = { nullable: true, size: 0, first: [], last: [] };
    while (this.#at < this.#chars.length && !'|)'.includes(this.#chars[this.#at]!)) {
      part = this.#join(part, this.#repeated());
    }
    return part;
  }

  #repeated(): Part {
    const start = this.#at;
    let part = this.#atom();
    const end = this.#at;
    for (let count = this.#quantifier(); count; count = this.#quantifier()) {
      const size = part.size * Math.max(1, count.most === Infinity ? count.least : count.most);
      const single = part.first.length === 1 && part.first[0] === part.last[0] && part.first[0]!.next.length === 0;
      if (count.most > 1 && single && count.least === count.most && count.most <= MAX_COPIES) {
        const after = this.#at;
        for (let copy = 1; copy < count.most; copy++) {
          this.#at = start;
          part = this.#join(part, this.#atom());
          if (this.#at !== end) break;
        }
        this.#at = after;
      } else if (count.most > 1) {
        this.#link(part.last, part.first);
      }
      part = { ...part, size, nullable: part.nullable || count.least === 0 };
    }
    return part;
  }

  #quantifier(): { least: number; most: number } | null {
    const char = this.#chars[this.#at];
    let count: { least: number; most: number } | null = null;
    if (char === '*' || char === '+' || char === '?') {
      this.#at++;
      count = { least: char === '+' ? 1 : 0, most: char === '?' ? 1 : Infinity };
    } else if (char === '{') {
      const match = /^\{(\d+)(,(\d*))?\}/.exec(this.#chars.slice(this.#at, this.#at + 16).join(''));
      if (!match) return null;
      this.#at += match[0].length;
      const least = Number(match[1]);
      count = { least, most: match[2] === undefined ? least : match[3] ? Number(match[3]) : Infinity };
    }
    if (count && this.#chars[this.#at] === '?') this.#at++;
    return count;
  }

  #atom(): Part {
    const char = this.#chars[this.#at++]!;
    if (char === '(') return this.#group();
    if (char === '[') return this.#position(this.#class());
    if (char === '.') return this.#position(ANY);
    if (char === '^' || char === '$') return EMPTY;
    if (char === '\\') return this.#escape();
    return this.#position(literal(char));
  }

  #group(): Part {
    if (this.#chars[this.#at] === '?') {
      const header = /^\?(P?<\w+>|[a-zA-Z-]*[:)])/.exec(this.#chars.slice(this.#at, this.#at + 128).join(''));
      this.#at += header?.[0].length ?? 1;
      if (header?.[0].endsWith(')')) return EMPTY;
    }
    const part = this.#alternatives();
    this.#at++;
    return part;
  }

  #escape(): Part {
    const char = this.#chars[this.#at++] ?? '\\';
    if ('bBAzZ'.includes(char)) return EMPTY;
    if (char === 'Q') {
      let part: Part = EMPTY;
      while (this.#at < this.#chars.length) {
        if (this.#chars[this.#at] === '\\' && this.#chars[this.#at + 1] === 'E') break;
        part = this.#join(part, this.#position(literal(this.#chars[this.#at++]!)));
      }
      this.#at += 2;
      return part;
    }
    return this.#position(this.#escapedSet(char));
  }

  /** The characters of an escape whose letter has just been read. */
  #escapedSet(char: string): CharSet {
    const known = CLASS_ESCAPES[char];
    if (known) return known;
    if (char === 'p' || char === 'P') {
      if (this.#chars[this.#at++] === '{') while (this.#at < this.#chars.length && this.#chars[this.#at++] !== '}');
      return ANY;
    }
    if (char === 'x') {
      const hex = /^\{([0-9a-fA-F]+)\}|^([0-9a-fA-F]{2})/.exec(this.#chars.slice(this.#at, this.#at + 12).join(''));
      this.#at += hex?.[0].length ?? 0;
      return hex ? literal(String.fromCodePoint(parseInt(hex[1] ?? hex[2]!, 16))) : ANY;
    }
    if (/[0-7]/.test(char)) {
      while (/[0-7]/.test(this.#chars[this.#at] ?? '')) this.#at++;
      return ANY;
    }
    return literal(Object.hasOwn(CONTROL_ESCAPES, char) ? String.fromCodePoint(CONTROL_ESCAPES[char]!) : char);
  }

  #class(): CharSet {
    const negated = this.#chars[this.#at] === '^';
    if (negated) this.#at++;
    const sets: CharSet[] = [];
    for (let first = true; first || this.#chars[this.#at] !== ']'; first = false) {
      if (this.#at >= this.#chars.length) return ANY;
      const set = this.#classItem();
      if (this.#chars[this.#at] === '-' && this.#chars[this.#at + 1] !== ']' && set !== ANY) {
        this.#at++;
        sets.push(rangeBetween(set, this.#classItem()));
      } else {
        sets.push(set);
      }
    }
    this.#at++;
    if (negated) return sets.includes(ANY) ? ANY : complement(sets.flat());
    return sets.flat();
  }

  #classItem(): CharSet {
    const char = this.#chars[this.#at++]!;
    if (char === '\\') return this.#escapedSet(this.#chars[this.#at++] ?? '\\');
    if (char === '[' && this.#chars[this.#at] === ':') {
      while (this.#at < this.#chars.length && this.#chars[this.#at++] !== ']');
      return ANY;
    }
    return literal(char);
  }

  #position(set: CharSet): Part {
    const position: PatternPosition = { set: merged(set), next: [], index: this.positions.length };
    this.positions.push(position);
    return { nullable: false, size: 1, first: [position], last: [position] };
  }
}

const EMPTY: Part = { nullable: true, size: 1, first: [], last: [] };

/** A character in all its cases. */
function literal(char: string): CharSet {
  const cases = new Set([char, char.toLowerCase(), char.toUpperCase(), char.toUpperCase().toLowerCase()]);
  return [...cases].flatMap((text) =>
    [...text].map((one): [number, number] => [one.codePointAt(0)!, one.codePointAt(0)!]),
  );
}

/**
 * The range from one class item to another, with the other case of letters; any character when the range leaves ASCII.
 */
function rangeBetween(from: CharSet, to: CharSet): CharSet {
  const low = Math.min(...from.map(([start]) => start));
  const high = Math.max(...to.map(([, end]) => end));
  if (high > 127) return ANY;
  return low < 123 && high > 64
    ? [
        [low, high],
        [65, 90],
        [97, 122],
      ]
    : [[low, high]];
}

/** The same characters in ascending ranges that do not touch. */
export function merged(set: CharSet): CharSet {
  if (set.length < 2) return set;
  const ranges: [number, number][] = [];
  for (const [low, high] of [...set].sort((a, b) => a[0] - b[0])) {
    const last = ranges.at(-1);
    if (last && low <= last[1] + 1) last[1] = Math.max(last[1], high);
    else ranges.push([low, high]);
  }
  return ranges;
}

/** True when two merged sets have a character in common. */
export function overlap(a: CharSet, b: CharSet): boolean {
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i]![1] < b[j]![0]) i++;
    else if (b[j]![1] < a[i]![0]) j++;
    else return true;
  }
  return false;
}

function complement(set: CharSet): CharSet {
  const rest: [number, number][] = [];
  let low = 0;
  for (const [start, end] of [...set].sort((a, b) => a[0] - b[0])) {
    if (start > low) rest.push([low, start - 1]);
    low = Math.max(low, end + 1);
  }
  if (low <= 0x10ffff) rest.push([low, 0x10ffff]);
  return rest;
}
