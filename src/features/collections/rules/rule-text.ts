import {
  OWN_ID,
  ruleOf,
  withoutPlaces,
  type CallerSet,
  type CallerValue,
  type Literal,
  type Places,
  type Rule,
  type RuleCondition,
  type RuleValue,
  type SetCondition,
} from './rule.js';

/** A rule that cannot be read or can never hold; `at` is the place in its text, counted from 0. */
export class RuleProblem extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message);
  }
}

const MAX_CHARACTERS = 2_000;
const MAX_ALTERNATIVES = 16;
const MAX_CONDITIONS = 8;
const MAX_LIST = 20;
/** Words that are written where a condition has to stand, and are none. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  ['not', 'there is no "not": say what has to hold, as in doc.open or doc.status in ["open", "late"]'],
  ['anyone', '"anyone" stands alone: with "or" everybody is admitted anyway, with "and" it adds nothing'],
  ['nobody', '"nobody" stands alone: with "and" nobody is admitted anyway, with "or" it adds nothing'],
]);

const SAY_WHAT_HOLDS = 'there is no negation: say what has to hold, as in doc.status in ["open", "late"]';
const NO_ORDER = 'there is no order: only "=" and "in" compare';
/** Signs of other languages of rules, and what stands in their place. */
const FOREIGN: ReadonlyMap<string, string> = new Map([
  ['===', 'one "=" compares'],
  ['==', 'one "=" compares'],
  ['!==', SAY_WHAT_HOLDS],
  ['!=', SAY_WHAT_HOLDS],
  ['<>', SAY_WHAT_HOLDS],
  ['!', SAY_WHAT_HOLDS],
  ['<', NO_ORDER],
  ['>', NO_ORDER],
  ['&&', 'write "and"'],
  ['||', 'write "or"'],
  ["'", 'a text stands in double quotes'],
]);

const MAX_SETS = 4;
/** Deeper brackets would exhaust the stack; 2,000 characters could nest them a thousand deep. */
const MAX_DEPTH = 50;

interface Token {
  kind: 'name' | 'text' | 'number' | 'mark' | 'end';
  text: string;
  at: number;
}

const SIGNS = /!==?|===?|<>|&&|\|\||[!<>']/y;
const TOKEN = /([A-Za-z_][\w-]*)|("(?:[^"\\\p{Cc}]|\\["\\])*")|(-?\d{1,15}(?:\.\d{1,6})?)|([=.,()[\]])/uy;

/**
 * Reads the text of a rule (rules.md 2) and writes it out as alternatives: at most 16, of at most 8 conditions each.
 * Throws a RuleProblem with the place.
 */
export function parseRule(text: string): Rule {
  return new RuleReader(readTokens(text)).readRule();
}

function readTokens(text: string): Token[] {
  if (text.length > MAX_CHARACTERS) {
    throw new RuleProblem(`a rule has at most ${MAX_CHARACTERS} characters`, MAX_CHARACTERS);
  }
  const half = text.search(/\p{Surrogate}/u);
  if (half >= 0) throw new RuleProblem('half a surrogate pair is not a character', half);
  const tokens: Token[] = [];
  let at = 0;
  for (;;) {
    while (/\s/.test(text.charAt(at))) at++;
    if (at >= text.length) break;
    SIGNS.lastIndex = at;
    const sign = SIGNS.exec(text)?.[0];
    if (sign !== undefined) throw new RuleProblem(`not ${sign}: ${FOREIGN.get(sign)}`, at);
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (!match) throw new RuleProblem(`unexpected ${JSON.stringify(text.charAt(at))}`, at);
    const [whole, name, quoted, number] = match;
    if (name !== undefined) tokens.push({ kind: 'name', text: name, at });
    else if (quoted !== undefined) tokens.push({ kind: 'text', text: JSON.parse(quoted) as string, at });
    else if (number !== undefined) tokens.push({ kind: 'number', text: number, at });
    else tokens.push({ kind: 'mark', text: whole, at });
    at = TOKEN.lastIndex;
  }
  tokens.push({ kind: 'end', text: '', at: text.length });
  return tokens;
}

type Alternatives = readonly (readonly RuleCondition[])[];

/** One side of a condition. */
type Side = RuleValue | { kind: 'path'; path: string };

class RuleReader {
  #next = 0;
  #depth = 0;
  #sets = 0;

  constructor(private readonly tokens: readonly Token[]) {}

  readRule(): Rule {
    if (this.tokens.length === 2 && this.#takes('anyone')) return ruleOf([[]]);
    if (this.tokens.length === 2 && this.#takes('nobody')) return ruleOf([]);
    const alternatives = this.#readOr();
    if (this.#token.kind !== 'end') this.#expected('"and", "or" or the end');
    return ruleOf(alternatives);
  }

  #readOr(): Alternatives {
    const { at } = this.#token;
    let alternatives = this.#readAnd();
    while (this.#takes('or')) alternatives = bounded([...alternatives, ...this.#readAnd()], at);
    return alternatives;
  }

  #readAnd(): Alternatives {
    const { at } = this.#token;
    let alternatives = this.#readTerm();
    while (this.#takes('and')) {
      const more = this.#readTerm();
      if (alternatives.length * more.length > MAX_ALTERNATIVES) throw tooManyAlternatives(at);
      const joined = alternatives.flatMap((left) => more.map((right) => [...left, ...right]));
      alternatives = bounded(joined, at);
    }
    return alternatives;
  }

  #readTerm(): Alternatives {
    const { at } = this.#token;
    if (!this.#takes('(')) return [[this.#readCondition()]];
    if (++this.#depth > MAX_DEPTH) throw new RuleProblem(`brackets may be ${MAX_DEPTH} deep at most`, at);
    const inner = this.#readOr();
    if (!this.#takes(')')) this.#expected('")"');
    this.#depth--;
    return inner;
  }

  #readCondition(): RuleCondition {
    const { at } = this.#token;
    if (this.#isMark('user') && this.tokens[this.#next + 1]?.text !== '.') {
      this.#next++;
      return { kind: 'signedIn' };
    }
    const left = this.#readSide();
    if (left.kind === 'list') throw new RuleProblem('a list stands on the right of "in"', at);
    if (left.kind === 'set') throw new RuleProblem('a set stands on the right of "in"', at);
    const { at: operator } = this.#token;
    const isEqual = this.#takes('=');
    if (!isEqual && !this.#takes('in')) {
      if (left.kind === 'literal') this.#expected('"=" or "in"');
      return compare(left, 'equals', { kind: 'literal', value: true }, { left: at, operator: at, right: at });
    }
    const { at: rightAt } = this.#token;
    const right = this.#readSide();
    if (isEqual && right.kind === 'list') throw new RuleProblem('write "in" before a list', rightAt);
    if (isEqual && right.kind === 'set') throw new RuleProblem('write "in" before a set', rightAt);
    if (!isEqual && right.kind === 'literal') {
      throw new RuleProblem(
        'on the right of "in" stands a list such as ["a", "b"], or a field that holds one',
        rightAt,
      );
    }
    return compare(left, isEqual ? 'equals' : 'among', right, { left: at, operator, right: rightAt });
  }

  #readSide(): Side {
    const { kind, at } = this.#token;
    if (kind === 'text' || kind === 'number' || this.#isMark('true') || this.#isMark('false')) {
      return this.#readSingle();
    }
    if (this.#takes('[')) return this.#readList(at);
    const root = this.#readName();
    if (root === 'user' || root === 'doc') {
      if (!this.#takes('.')) this.#expected(`"." and a name after "${root}"`);
      const path = this.#readPath();
      return root === 'user' ? { kind: 'attribute', name: path } : { kind: 'path', path };
    }
    if (this.#takes('[')) return { kind: 'set', set: this.#readSet(root, at) };
    const advice = ADVICE.get(root);
    if (advice !== undefined) throw new RuleProblem(advice, at);
    throw new RuleProblem(
      `what is ${root}? Write doc.${root} for a field of the document, user.${root} for one of the caller, ${root}[user = user.id].field for what documents of the collection ${root} hold`,
      at,
    );
  }

  #readSet(collection: string, at: number): CallerSet {
    if (++this.#sets > MAX_SETS) throw new RuleProblem(`a rule has at most ${MAX_SETS} sets`, at);
    const conditions: SetCondition[] = [];
    do conditions.push(this.#readSetCondition());
    while (this.#takes('and'));
    if (!this.#takes(']')) this.#expected('"and" or "]"');
    if (conditions.length > MAX_CONDITIONS) {
      throw new RuleProblem(`a set has at most ${MAX_CONDITIONS} conditions`, at);
    }
    if (!this.#takes('.')) this.#expected(`"." and the field of ${collection} that is meant`);
    const { at: pathAt } = this.#token;
    const path = this.#readPath();
    const [own, ...more] = conditions.filter(({ value }) => value.kind === 'attribute' && value.name === OWN_ID);
    if (!own || own.asks === 'among' || more.length > 0) {
      throw new RuleProblem(`a set asks once for user.id, as in ${collection}[user = user.id].${path}`, at);
    }
    const others = conditions.filter((each) => each !== own);
    const texts = others.map((condition) => JSON.stringify(condition, withoutPlaces)).sort();
    const text = JSON.stringify([collection, own.path, path, texts]);
    const places = { set: at, path: pathAt, user: own.places };
    return { collection, userPath: own.path, userAsks: own.asks, conditions: others, path, text, places };
  }

  /** Bare names are fields of the set's collection, `user` too unless a dot follows. */
  #readSetCondition(): SetCondition {
    const { at } = this.#token;
    const caller = this.#readAttribute();
    const path = caller ? null : this.#readPath();
    const { at: operator } = this.#token;
    if (path === null) {
      if (!this.#takes('in')) this.#expected('"in"');
      const places = { path: this.#token.at, operator, value: at };
      return { path: this.#readPath(), asks: 'holds', value: caller!, places };
    }
    const isEqual = this.#takes('=');
    if (!isEqual && !this.#takes('in')) {
      const places = { path: at, operator: at, value: at };
      return { path, asks: 'equals', value: { kind: 'literal', value: true }, places };
    }
    const { at: valueAt } = this.#token;
    const places = { path: at, operator, value: valueAt };
    if (isEqual) {
      if (this.#isMark('[')) throw new RuleProblem('write "in" before a list', valueAt);
      return { path, asks: 'equals', value: this.#readAttribute() ?? this.#readSingle(), places };
    }
    if (this.#takes('[')) return { path, asks: 'among', value: this.#readList(valueAt), places };
    const value = this.#readAttribute();
    return value ? { path, asks: 'among', value, places } : this.#expected('a list in brackets, or a list of the user');
  }

  #readAttribute(): CallerValue | null {
    if (!this.#isMark('user') || this.tokens[this.#next + 1]?.text !== '.') return null;
    return { kind: 'attribute', name: this.#readPath().slice('user.'.length) };
  }

  #readSingle(): CallerValue {
    return { kind: 'literal', value: this.#readLiteral() };
  }

  #readLiteral(): Literal {
    const { kind, text, at } = this.#token;
    if (kind !== 'text' && kind !== 'number' && text !== 'true' && text !== 'false') {
      throw new RuleProblem('expected a text in quotes, a number, true or false', at);
    }
    this.#next++;
    return kind === 'text' ? text : kind === 'number' ? Number(text) : text === 'true';
  }

  #readList(at: number): CallerValue {
    const values: Literal[] = [];
    const places: number[] = [];
    do {
      places.push(this.#token.at);
      values.push(this.#readLiteral());
    } while (this.#takes(','));
    if (!this.#takes(']')) this.#expected('"," or "]"');
    if (values.length > MAX_LIST) throw new RuleProblem(`a list has at most ${MAX_LIST} values`, at);
    return { kind: 'list', values, places };
  }

  #readPath(): string {
    let path = this.#readName();
    while (this.#takes('.')) path += `.${this.#readName()}`;
    return path;
  }

  #readName(): string {
    if (this.#token.kind !== 'name') this.#expected('a name');
    return this.tokens[this.#next++]!.text;
  }

  get #token(): Token {
    return this.tokens[this.#next]!;
  }

  /** The next token is this word or mark, not a text in quotes. */
  #isMark(text: string): boolean {
    return this.#token.text === text && this.#token.kind !== 'text' && this.#token.kind !== 'end';
  }

  #takes(text: string): boolean {
    if (!this.#isMark(text)) return false;
    this.#next++;
    return true;
  }

  #expected(what: string): never {
    const { kind, text, at } = this.#token;
    throw new RuleProblem(`expected ${what}, not ${kind === 'end' ? 'the end' : JSON.stringify(text)}`, at);
  }
}

function compare(
  left: Exclude<Side, { kind: 'set' }>,
  asks: 'equals' | 'among',
  right: Side,
  at: { left: number; operator: number; right: number },
): RuleCondition {
  const places: Places = { path: at.left, operator: at.operator, value: at.right };
  if (left.kind === 'path') {
    if (right.kind === 'path') throw new RuleProblem('two fields of a document cannot be compared', at.right);
    return { kind: 'document', path: left.path, asks, value: right, places };
  }
  if (right.kind === 'path') {
    const asked = asks === 'among' ? 'holds' : asks;
    const turned = { path: at.right, operator: at.operator, value: at.left };
    return { kind: 'document', path: right.path, asks: asked, value: left, places: turned };
  }
  if (left.kind !== 'attribute' && right.kind !== 'attribute' && right.kind !== 'set') {
    throw new RuleProblem('this names neither the caller nor the document: it is always the same', at.left);
  }
  return { kind: 'caller', left, asks, right, places };
}

function bounded(alternatives: Alternatives, at: number): Alternatives {
  if (alternatives.length > MAX_ALTERNATIVES) throw tooManyAlternatives(at);
  if (alternatives.some((conditions) => conditions.length > MAX_CONDITIONS)) {
    throw new RuleProblem(`written out, an alternative has more than ${MAX_CONDITIONS} conditions`, at);
  }
  return alternatives;
}

function tooManyAlternatives(at: number): RuleProblem {
  return new RuleProblem(`written out, the rule has more than ${MAX_ALTERNATIVES} alternatives`, at);
}
