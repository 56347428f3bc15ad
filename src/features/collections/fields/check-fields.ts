import { invalid, type FieldProblem } from '../../../errors.js';
import { constraintProblems, defaultProblem } from './constraints/check-value.js';
import { CONSTRAINT_NAMES } from './constraints/constraint-rows.js';
import { FIELD_TYPE_RULES, isWellFormed } from './field-type.js';
import { FIELD_TYPES, KEPT_FIELDS, OWN_USER, UNSAFE_NAMES, type Field, type FieldShape } from './field.js';
import { type CollectionMode, isCollectionName } from '../collection.js';

/**
 * Why the references of a top-level field cannot be kept, as the rest of a sentence about it; null = they can. Checked
 * are a Ref at the top level and the items of a list there: the documents that hold them are found by an index.
 */
function referenceProblem(field: Field): { rule: 'check' | 'onDelete'; text: string } | null {
  const shape = field.type === 'Array' && field.items ? field.items : field;
  if (partsOf(shape).some(isChecked)) {
    return { rule: 'check', text: 'cannot have check: only a Ref at the top level can, or the items of a list there' };
  }
  if (!shape.check) return null;
  if (shape.ref === undefined) return { rule: 'check', text: 'needs the name of a collection for check: Ref(posts)' };
  if (shape.onDelete !== 'unset') return null;
  if (shape === field && field.required) return { rule: 'onDelete', text: 'is required, so that it cannot be unset' };
  if (field.minItems) return { rule: 'onDelete', text: 'has minItems, so that its items cannot be unset' };
  return null;
}

const partsOf = ({ items, fields = [] }: FieldShape): FieldShape[] => [...(items ? [items] : []), ...fields];

const isChecked = (shape: FieldShape): boolean => Boolean(shape.check) || partsOf(shape).some(isChecked);

const MAX_FIELDS = 200;
const MAX_FIELD_NESTING = 5;
const MAX_FIELD_NAME_LENGTH = 128;
/** A refusal stays short, however many and however long the names are. */
const MAX_LISTED = 50;
const MAX_SHOWN = 300;

/**
 * Checks field declarations from HTTP or the command line and returns them in their stored form: no empty flags. Throws
 * one 400 that lists the problems; an enforced collection without fields is `EMPTY_SCHEMA`.
 */
export function checkFields(fields: readonly Field[], collection: { name: string; mode: CollectionMode }): Field[] {
  if (fields.length === 0 && collection.mode === 'enforced') {
    throw invalid('EMPTY_SCHEMA', 'At least one field is required');
  }
  const review = new Review(collection.name === 'users');
  const checked = review.fields(fields, '', 1);
  review.common(checked);
  if (review.count > MAX_FIELDS) review.refuse('fields', 'count', `there can be at most ${MAX_FIELDS} fields`);
  if (review.problems.length > 0) {
    throw invalid('VALIDATION_FAILED', `Invalid field: ${review.problems[0]!.message}`, { details: review.problems });
  }
  return checked;
}

class Review {
  readonly problems: FieldProblem[] = [];
  count = 0;
  readonly #users: boolean;

  constructor(users: boolean) {
    this.#users = users;
  }

  refuse(path: string, rule: string, text: string): void {
    if (this.problems.length === MAX_LISTED) return;
    const field = path.length > MAX_SHOWN ? `${path.slice(0, MAX_SHOWN)}…` : path;
    this.problems.push({ field, rule, message: field === 'fields' ? text : `${field} ${text}` });
  }

  fields(fields: readonly Field[], prefix: string, level: number): Field[] {
    const seen = new Set<string>();
    return fields.map((field) => {
      const path = prefix + field.name;
      if (seen.has(field.name)) this.refuse(path, 'name', 'is declared twice');
      seen.add(field.name);
      const problem = nameProblem(field.name, level === 1);
      if (problem) this.refuse(path, 'name', problem);
      return this.#field(field, path, level);
    });
  }

  /** What a document has in common with those that it refers to is one value of its own. */
  common(fields: readonly Field[]): void {
    for (const { name, items, same = items?.same ?? [] } of fields) {
      for (const other of same) {
        const known = fields.find((field) => field.name === other);
        if (known && other !== name && known.type !== 'Array' && known.type !== 'Object') continue;
        this.refuse(name, 'same', `has a same that names ${other}: it must name a field with one value beside it`);
      }
    }
  }

  #field(field: Field, path: string, level: number): Field {
    this.count += 1;
    const checked: Field = { name: field.name, ...this.#shape(field, path, level) };
    const rules = FIELD_TYPE_RULES[checked.type] as (typeof FIELD_TYPE_RULES)[Field['type']] | undefined;
    if (field.required) checked.required = true;
    if (field.unique) {
      if (level > 1) {
        this.refuse(path, 'unique', 'cannot be unique: only top-level fields can');
      } else if (rules && !rules.canBeUnique) {
        this.refuse(path, 'unique', `cannot be unique: it is of type ${checked.type}`);
      }
      checked.unique = true;
    }
    if (field.nocase) {
      if (this.#users || level > 1 || checked.type !== 'String') {
        this.refuse(path, 'nocase', 'cannot be @nocase: only a String at the top level can, and not of users');
      }
      checked.nocase = true;
    }
    if (field.default !== undefined && field.default !== null) {
      if (field.required) {
        this.refuse(path, 'default', 'cannot be required and have a default: a field with a default is always there');
      } else if (rules && !rules.canDefault) {
        this.refuse(path, 'default', `cannot have a default: it is of type ${field.type}`);
      } else if (rules && rules.store(field.default) === undefined) {
        this.refuse(path, 'default', `has a default that is not a ${field.type}`);
      } else if (typeof field.default === 'string' && !isWellFormed(field.default)) {
        this.refuse(path, 'default', 'has a default with half a surrogate pair, which is not a character');
      } else {
        const problem = defaultProblem(checked, field.default);
        if (problem !== null) this.refuse(path, 'default', problem);
      }
      checked.default = field.default;
    }
    if (field.stamp) {
      const isText = checked.type === 'String' || checked.type === 'Ref';
      if (this.#users || level > 1 || !isText || checked.default !== undefined) {
        const text =
          'cannot be stamped: only a String or Ref at the top level can, without a default, and not of users';
        this.refuse(path, 'stamp', text);
      }
      checked.stamp = OWN_USER;
    }
    if (field.fixed) {
      if (this.#users || level > 1) {
        this.refuse(path, 'fixed', 'cannot be fixed: only top-level fields can, not of users');
      }
      checked.fixed = true;
    }
    if (field.hook) {
      if (level > 1) this.refuse(path, 'hook', 'cannot be @hook: only top-level fields can');
      checked.hook = true;
    }
    const unsound = level === 1 ? referenceProblem(checked) : null;
    if (unsound) this.refuse(path, unsound.rule, unsound.text);
    this.#access(field, checked, path, level);
    for (const flag of ['protected', 'public'] as const) {
      if (!field[flag]) continue;
      if (!this.#users || level > 1) this.refuse(path, flag, `cannot be ${flag}: only top-level fields of users can`);
      checked[flag] = true;
    }
    return checked;
  }

  /** Who sees and sets the field; what its rules say is checked with those of the collection. */
  #access(field: Field, checked: Field, path: string, level: number): void {
    const { hidden, read, write } = field;
    const marks = [hidden && 'hidden', read !== undefined && 'read', write !== undefined && 'write'].filter(isText);
    const [mark] = marks;
    if (mark === undefined) return;
    const refuse = (text: string): void => this.refuse(path, mark, `cannot have @${mark}: ${text}`);
    if (this.#users) refuse('of users, @public and @protected say who sees and sets what');
    else if (level > 1) refuse('only top-level fields can');
    else if (checked.unique) refuse('it is unique, and who stores a taken value would learn of it');
    else if (hidden && marks.length > 1) refuse('a hidden field is the secret key’s alone, with no other rule');
    else if (hidden && checked.required) refuse('it is required, and nobody but the secret key could store a document');
    if (hidden) checked.hidden = true;
    if (read !== undefined) checked.read = read;
    if (write !== undefined) checked.write = write;
  }

  #shape(shape: FieldShape, path: string, level: number): FieldShape {
    const checked: FieldShape = { type: shape.type };
    if (!FIELD_TYPES.includes(shape.type)) {
      this.refuse(path, 'type', `must have one of the types ${FIELD_TYPES.join(', ')}`);
      return checked;
    }
    if (level > MAX_FIELD_NESTING) {
      this.refuse(path, 'nesting', `is nested deeper than ${MAX_FIELD_NESTING} levels`);
      return checked;
    }
    if (shape.ref !== undefined) {
      if (shape.type !== 'Ref') this.refuse(path, 'ref', 'cannot name a collection: only a Ref can');
      else if (!isCollectionName(shape.ref)) this.refuse(path, 'ref', 'must name a collection');
      checked.ref = shape.ref;
    }
    if (shape.fields !== undefined && shape.fields.length > 0) {
      if (shape.type !== 'Object') this.refuse(path, 'fields', 'cannot have sub-fields: only an Object can');
      else checked.fields = this.fields(shape.fields, `${path}.`, level + 1);
    }
    if (shape.items !== undefined) {
      if (shape.type !== 'Array') this.refuse(path, 'items', 'cannot declare items: only an Array can');
      else checked.items = this.#shape(shape.items, `${path}.items`, level + 1);
    }
    for (const { name, text } of constraintProblems(shape)) this.refuse(path, name, text);
    for (const name of CONSTRAINT_NAMES) {
      if (shape[name] !== undefined) Object.assign(checked, { [name]: shape[name] });
    }
    if (checked.onDelete !== undefined || checked.same) checked.check = true;
    return checked;
  }
}

const isText = (mark: string | false | undefined): mark is string => typeof mark === 'string';

function nameProblem(name: string, topLevel: boolean): string | null {
  if (name === '') return 'must have a name';
  if (name.length > MAX_FIELD_NAME_LENGTH) return `has a name longer than ${MAX_FIELD_NAME_LENGTH} characters`;
  if (name.startsWith('$')) return 'must not begin with $';
  if (name.includes('.')) return 'must not contain a dot';
  if (/[\s\p{Cc}]/u.test(name)) return 'must not contain white space';
  if (!isWellFormed(name)) return 'has a name with half a surrogate pair, which is not a character';
  if (UNSAFE_NAMES.has(name)) return 'is a reserved name';
  if (topLevel && KEPT_FIELDS.includes(name)) return 'is kept by the service and cannot be declared';
  return null;
}
