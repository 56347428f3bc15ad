import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'bson';
import type { App } from '../../../app.js';
import { conflict } from '../../../errors.js';
import { documentsName, type Collection } from '../collection.js';
import type { Field, FieldShape, FieldType } from '../fields/field.js';
import { MAX_RULED_CHARACTERS, ruledPaths } from './collection-rules.js';

type Ruled = Pick<Collection, 'rules' | 'namedBy' | 'fields'>;

/** How the database calls what a field of a type holds. */
const STORED_TYPES: Partial<Record<FieldType, string>> = {
  String: 'string',
  Ref: 'string',
  Number: 'number',
  Boolean: 'bool',
};

const MAX_LISTED = 10;
const CHECK_MS = 60_000;

/**
 * 409 RULE_VIOLATIONS when stored documents hold something else than is declared in a field that the rules of `to`
 * name, and those of `from` did not name like this: a list where one value is declared would be equal to each of its
 * items.
 */
export async function requireNoRuleViolations(
  app: Pick<App, 'db'>,
  from: Collection | null,
  to: Collection,
): Promise<void> {
  const known = from ? new Set(ruledPaths(from)) : new Set<string>();
  const isNew = (path: string): boolean =>
    !known.has(path) || !isDeepStrictEqual(topField(from!, path), topField(to, path));
  const conditions = ruledPaths(to)
    .filter(isNew)
    .flatMap((path) => violations('', to.fields, path.split('.')));
  if (conditions.length === 0) return;
  const documents = app.db.collection(documentsName(to));
  const filter = { $or: conditions };
  const found = await documents.find(filter).project({ _id: 1 }).limit(MAX_LISTED).maxTimeMS(CHECK_MS).toArray();
  if (found.length === 0) return;
  const count = await documents.countDocuments(filter, { maxTimeMS: CHECK_MS });
  const ids = found.map(({ _id }) => String(_id));
  const those = count === 1 ? 'One stored document' : `${count} stored documents`;
  const message = `${those} of "${to.name}" cannot be under its rules: a field that they name holds something else than is declared (${ids.join(', ')}${count > ids.length ? ', …' : ''}). Mend what is stored first`;
  throw conflict('RULE_VIOLATIONS', message, {
    details: ids.map((id) => ({ field: id, rule: 'access', message: 'does not fit the fields that the rules name' })),
  });
}

function topField({ fields }: Ruled, path: string): Field | undefined {
  return fields.find(({ name }) => name === path.split('.')[0]);
}

/** Conditions that a document meets whose value at the path is not what is declared. Absent and null always fit. */
function violations(prefix: string, fields: readonly Field[], [part, ...rest]: readonly string[]): Document[] {
  const field = fields.find(({ name }) => name === part);
  if (!field) return [];
  const path = prefix === '' ? field.name : `${prefix}.${field.name}`;
  return violationsOfShape(path, field, rest);
}

function violationsOfShape(path: string, shape: FieldShape, rest: readonly string[]): Document[] {
  if (shape.type === 'Array') {
    const items = shape.items ? violationsOfItems(path, shape.items, rest) : [];
    return [{ [path]: { $exists: true, $ne: null, $not: { $type: 'array' } } }, ...items];
  }
  const stored = rest.length > 0 ? 'object' : STORED_TYPES[shape.type];
  if (stored === undefined) return [];
  const wrong = [{ [path]: { $type: 'array' } }, { [path]: { $exists: true, $ne: null, $not: { $type: stored } } }];
  return rest.length > 0
    ? [...wrong, ...violations(path, shape.fields ?? [], rest)]
    : [...wrong, ...tooLong(path, shape)];
}

/** Texts, or items of a list, that are longer than those that rules compare. */
function tooLong(path: string, { type, maxLength, enum: values }: FieldShape): Document[] {
  if (type !== 'String' || maxLength !== undefined || values !== undefined) return [];
  return [{ [path]: { $regex: `^.{${MAX_RULED_CHARACTERS + 1}}`, $options: 's' } }];
}

/** Items that are not what is declared; a field of objects in a list is compared item by item. */
function violationsOfItems(path: string, items: FieldShape, rest: readonly string[]): Document[] {
  const stored = rest.length > 0 ? 'object' : STORED_TYPES[items.type];
  if (stored === undefined) return [];
  const wrong = { [path]: { $elemMatch: { $not: { $type: stored } } } };
  return rest.length > 0 ? [wrong, ...violations(path, items.fields ?? [], rest)] : [wrong, ...tooLong(path, items)];
}
