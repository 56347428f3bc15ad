import {
  CONSTRAINT_NAMES,
  constraintRow,
  type ConstraintRow,
} from '../../src/features/collections/fields/constraints/constraint-rows.js';
import {
  FIELD_TYPES,
  hasRule,
  NAMED_MARKS,
  OWN_USER,
  type Field,
  type FieldShape,
  type FieldType,
} from '../../src/features/collections/fields/field.js';
import { pointAt, UsageError } from '../view/exit.js';
import { isDeepStrictEqual } from 'node:util';
import { namesOf } from '../../src/features/collections/fields/constraints/check-value.js';

const NUMBER = /^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const DEFAULTABLE: readonly FieldType[] = ['String', 'Number', 'Boolean'];
/** Deeper text is refused before it can exhaust the parser's stack; the rule for stored schemas is stricter. */
const MAX_DEPTH = 16;

/**
 * Reads `name:Type[!][&][=default]` (cli.md, Field SPEC) with `Ref(users)`, `Object{a:String!,b:Number}`,
 * `Array(String)`, constraints such as `String{enum:a|b}` (writes.md 2), `=user.id`, `@nocase`, `@fixed`, `@hook`,
 * `@hidden`, `@read(rule)`, `@write(rule)`, `@protected` and `@public`. Throws a UsageError that points at the
 * offending character. A default with special characters is written as a JSON string: `note:String="a, b"`.
 */
export function parseFieldSpec(spec: string): Field {
  const reader = new SpecReader(spec);
  const field = reader.readField(0);
  reader.expectEnd();
  return field;
}

const constraintsOf = (type: FieldType): string =>
  CONSTRAINT_NAMES.filter((name) => constraintRow(name).types.includes(type)).join(', ');

class SpecReader {
  private at = 0;
  constructor(private readonly spec: string) {}

  readField(depth: number): Field {
    const name = this.readName();
    if (!this.take(':')) this.fail(`expected ":" and a type after the name "${name}"`);
    const shape = this.readShape(depth);
    const field: Field = { name, ...shape };
    this.readMarks(field, depth);
    return field;
  }

  expectEnd(): void {
    if (this.at < this.spec.length) this.fail(`unexpected ${JSON.stringify(this.peek())}`);
  }

  private readName(): string {
    const start = this.at;
    while (this.at < this.spec.length && !/[\s:{}(),!&=@]/.test(this.peek())) this.at++;
    if (this.at === start) this.fail('expected the name of a field');
    return this.spec.slice(start, this.at);
  }

  private readShape(depth: number): FieldShape {
    const start = this.at;
    const word = /^\w*/.exec(this.spec.slice(this.at))![0];
    this.at += word.length;
    const type = FIELD_TYPES.find((known) => known === word);
    if (!type) {
      const meant = FIELD_TYPES.find((known) => known.toLowerCase() === word.toLowerCase());
      this.failAt(start, `expected ${meant ? `"${meant}"` : `a type: ${FIELD_TYPES.join(', ')}`}`);
    }
    if (depth >= MAX_DEPTH) this.failAt(start, 'nested too deep');
    if (type === 'Ref') return this.readRef();
    if (type === 'Object') return this.readObject(depth);
    if (type === 'Array') return this.readArray(depth);
    return this.withConstraints({ type });
  }

  private readRef(): FieldShape {
    if (!this.take('(')) return this.withConstraints({ type: 'Ref' });
    const ref = this.readName();
    if (!this.take(')')) this.fail('expected ")" after the collection that is referred to');
    return this.withConstraints({ type: 'Ref', ref });
  }

  private readObject(depth: number): FieldShape {
    if (!this.take('{')) return { type: 'Object' };
    const fields: Field[] = [];
    do {
      const start = this.at;
      const field = this.readField(depth + 1);
      if (fields.some((other) => other.name === field.name)) this.failAt(start, `"${field.name}" is named twice`);
      fields.push(field);
    } while (this.take(','));
    if (!this.take('}')) this.fail('expected "," or "}"');
    return { type: 'Object', fields };
  }

  private readArray(depth: number): FieldShape {
    if (!this.take('(')) return this.withConstraints({ type: 'Array' });
    const items = this.readShape(depth + 1);
    if (!this.take(')')) this.fail('expected ")" after the type of the items');
    return this.withConstraints({ type: 'Array', items });
  }

  /** `{min:0,integer}` behind a type; the values of a list are separated by `|`. */
  private withConstraints(shape: FieldShape): FieldShape {
    if (!this.take('{')) return shape;
    do {
      const start = this.at;
      const word = /^\w*/.exec(this.spec.slice(this.at))![0];
      const name = CONSTRAINT_NAMES.find((known) => known === word);
      if (!name) this.failAt(start, `expected a constraint: ${constraintsOf(shape.type)}`);
      if (shape[name] !== undefined) this.failAt(start, `${name} is given twice`);
      this.at += word.length;
      const { written } = constraintRow(name);
      if (written !== 'flag' && !this.take(':')) this.fail(`expected ":" and a value after ${name}`);
      Object.assign(shape, { [name]: this.readSetting(written, shape.type) });
    } while (this.take(','));
    if (!this.take('}')) this.fail('expected "," or "}"');
    return shape;
  }

  private readSetting(written: ConstraintRow['written'], type: FieldType): unknown {
    if (written === 'flag') return true;
    if (written === 'count') return this.readNumber(/[,}]/);
    if (written === 'bound') return type === 'Number' ? this.readNumber(/[,}]/) : this.readPart(/[,}]/);
    if (written === 'text') return this.readPart(/[,}]/);
    if (written === 'names') return this.readNames();
    const values: (string | number)[] = [];
    do values.push(type === 'Number' ? this.readNumber(/[|,}]/) : this.readPart(/[|,}]/));
    while (this.take('|'));
    return values;
  }

  /** `[org,team]` */
  private readNames(): string[] {
    if (!this.take('[')) this.fail('expected names in brackets, such as [org]');
    const names: string[] = [];
    do names.push(this.readPart(/[,\]}]/));
    while (this.take(','));
    if (!this.take(']')) this.fail('expected "," or "]"');
    return names;
  }

  private readPart(end: RegExp): string {
    const start = this.at;
    const text = this.peek() === '"' ? this.readQuoted() : this.readUntil(end);
    if (text === '') this.failAt(start, 'expected a value; a text with special characters stands in quotes');
    return text;
  }

  private readNumber(end: RegExp): number {
    const start = this.at;
    const text = this.readUntil(end);
    if (!NUMBER.test(text) || !Number.isFinite(Number(text))) this.failAt(start, 'expected a number');
    return Number(text);
  }

  private readMarks(field: Field, depth: number): void {
    for (;;) {
      const start = this.at;
      if (this.take('!')) {
        field.required = true;
        if (field.type === 'Ref') this.withConstraints(field);
      } else if (this.take('&')) {
        if (depth > 0) this.failAt(start, 'only a field at the top level can be unique');
        field.unique = true;
      } else if (this.take('=')) {
        if (this.takeStamp(depth)) field.stamp = OWN_USER;
        else field.default = this.readDefault(field.type, start, depth);
      } else if (this.take('@')) {
        this.readMark(field, start, depth);
      } else {
        return;
      }
    }
  }

  private readMark(field: Field, start: number, depth: number): void {
    const word = /^\w*/.exec(this.spec.slice(this.at))![0];
    const mark = NAMED_MARKS.find((known) => known === word);
    if (!mark) {
      const [last, ...others] = NAMED_MARKS.map((known) => `@${known}${hasRule(known) ? '(rule)' : ''}`).reverse();
      this.failAt(start, `expected ${others.reverse().join(', ')} or ${last}`);
    }
    if (depth > 0) this.failAt(start, `only a field at the top level can be @${mark}`);
    this.at += mark.length;
    if (hasRule(mark)) field[mark] = this.readRule();
    else field[mark] = true;
  }

  /** A rule in brackets, which may have brackets and quoted texts of its own. */
  private readRule(): string {
    if (!this.take('(')) this.fail('expected "(" and a rule, such as (doc.owner = user.id)');
    const start = this.at;
    for (let open = 1; open > 0;) {
      const [piece] = /^(?:"(?:[^"\\]|\\.)*"|[^"()]+|[()])/.exec(this.spec.slice(this.at)) ?? [];
      if (piece === undefined) this.fail(this.peek() === '"' ? 'this quotation mark is never closed' : 'expected ")"');
      if (piece === '(') open++;
      if (piece === ')') open--;
      this.at += piece.length;
    }
    const rule = this.spec.slice(start, this.at - 1).trim();
    if (rule === '') this.failAt(start, 'expected a rule');
    return rule;
  }

  /** `=user.id`, which is no text: that one is written in quotes. */
  private takeStamp(depth: number): boolean {
    if (depth > 0 || !/^user\.id(?=$|[!&@])/.test(this.spec.slice(this.at))) return false;
    this.at += OWN_USER.length;
    return true;
  }

  private readDefault(type: FieldType, equals: number, depth: number): string | number | boolean {
    if (!DEFAULTABLE.includes(type)) this.failAt(equals, `a field of type ${type} cannot have a default`);
    const start = this.at;
    const text = this.peek() === '"' ? this.readQuoted() : this.readBare(depth);
    if (type === 'String') return text;
    if (type === 'Boolean') {
      if (text === 'true' || text === 'false') return text === 'true';
      this.failAt(start, 'expected true or false');
    }
    if (!NUMBER.test(text) || !Number.isFinite(Number(text))) {
      this.failAt(start, 'expected a number');
    }
    return Number(text);
  }

  private readBare(depth: number): string {
    return this.readUntil(depth > 0 ? /[,}@]/ : /@/);
  }

  private readUntil(ends: RegExp): string {
    const end = ends.exec(this.spec.slice(this.at));
    const text = this.spec.slice(this.at, end ? this.at + end.index : undefined);
    this.at += text.length;
    return text;
  }

  private readQuoted(): string {
    const literal = /^"(?:[^"\\]|\\.)*"/.exec(this.spec.slice(this.at))?.[0];
    if (!literal) this.fail('this quotation mark is never closed');
    let text: string;
    try {
      text = JSON.parse(literal) as string;
    } catch {
      this.fail('not a valid quoted text');
    }
    this.at += literal.length;
    return text;
  }

  private peek(): string {
    return this.spec[this.at] ?? '';
  }

  private take(character: string): boolean {
    if (this.peek() !== character) return false;
    this.at++;
    return true;
  }

  private fail(problem: string): never {
    this.failAt(this.at, problem);
  }

  private failAt(position: number, problem: string): never {
    const place = position >= this.spec.length ? 'at the end' : `at character ${position + 1}`;
    throw new UsageError(
      `Bad field spec: ${problem} (${place}). The form is name:Type[!][&][=default].`,
      pointAt({ text: this.spec, at: position }),
    );
  }
}

/** The field as `name:Type[!][&][=default]`; null when no spec says exactly this field. */
export function presentFieldSpec(field: Field): string | null {
  const spec = writeField(field);
  try {
    return isDeepStrictEqual(parseFieldSpec(spec), field) ? spec : null;
  } catch {
    return null;
  }
}

function writeField(field: Field): string {
  const marks = [
    field.required ? '!' : '',
    field.unique ? '&' : '',
    field.default === undefined ? '' : `=${writeDefault(field.default)}`,
    field.stamp ? `=${field.stamp}` : '',
    ...NAMED_MARKS.map((mark) => (field[mark] ? `@${mark}${hasRule(mark) ? `(${field[mark]})` : ''}` : '')),
  ];
  return `${field.name}:${presentType(field)}${marks.join('')}`;
}

function writeDefault(value: string | number | boolean): string {
  return typeof value === 'string' && !/^[\w-]+$/.test(value) ? JSON.stringify(value) : String(value);
}

/** The type as a field spec writes it: `Array(Ref(users))`. */
export function presentType(shape: FieldShape): string {
  if (shape.type === 'Ref' && shape.ref) return `Ref(${shape.ref})${writeConstraints(shape)}`;
  if (shape.type === 'Array') {
    return `Array${shape.items ? `(${presentType(shape.items)})` : ''}${writeConstraints(shape)}`;
  }
  if (shape.type === 'Object' && shape.fields) return `Object{${shape.fields.map(writeField).join(',')}}`;
  return `${shape.type}${writeConstraints(shape)}`;
}

function writeConstraints(shape: FieldShape): string {
  const parts = namesOf(shape).map((name) => {
    const { written } = constraintRow(name);
    if (written === 'flag') return name;
    if (written === 'names') return `${name}:[${shape[name] as string}]`;
    return `${name}:${[shape[name]].flat().map(writeSetting).join('|')}`;
  });
  return parts.length > 0 ? `{${parts.join(',')}}` : '';
}

function writeSetting(value: unknown): string {
  return typeof value === 'string' && !/^[^",|{}\s]+$/.test(value) ? JSON.stringify(value) : String(value);
}
