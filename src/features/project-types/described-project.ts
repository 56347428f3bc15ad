import type { App } from '../../app.js';
import type { Collection } from '../collections/collection.js';
import { namesOf } from '../collections/fields/constraints/check-value.js';
import { constraintRow } from '../collections/fields/constraints/constraint-rows.js';
import { HIDDEN_FIELD, type Field, type FieldShape } from '../collections/fields/field.js';
import {
  ACCESS_SENTENCES,
  accessWord,
  isServerOnly,
  rulesOf,
  type CollectionAccess,
} from '../collections/rules/collection-rules.js';
import { admitsAnyone, admitsNobody } from '../collections/rules/rule.js';
import { listCollections } from '../collections/collection-store.js';
import { ROLES, EMAIL_VERIFIED, USERS } from '../collections/users-collection.js';
import { isFieldPath } from '../documents/store/find-field.js';
import type { Project } from '../projects/project.js';

/** A field, which documents may lack for their reader's sake although it has a default. */
export interface DescribedField extends Field {
  isLeftOut?: boolean;
}

/** True for a field that every document has. */
export function isAlwaysThere({ required, default: preset, isLeftOut = false }: DescribedField): boolean {
  return required === true || (preset !== undefined && !isLeftOut);
}

/** A collection as types and schemas are made of it, its fields in the order of their names. */
export interface DescribedCollection {
  name: string;
  /** Begins the names of its types: `my-posts` is `MyPosts`. Unique in the project. */
  typeName: string;
  isFlexible: boolean;
  isUsers: boolean;
  fields: readonly DescribedField[];
  /** Holds the id of the owning user; null without row-level security. */
  ownerField: string | null;
  /** Fields that the reader's documents are filled in with where it leaves them out. */
  filledIn: readonly string[];
  /** Fields that the reader sets in new documents alone. */
  setOnce: readonly string[];
  /** Who may do what, a line each; rules in their text for the secret key alone, since they may name hidden fields. */
  access: readonly string[];
}

/** All of a project that its types tell of, in an order of its own: the same project is always described the same. */
export interface DescribedProject {
  name: string;
  collections: readonly DescribedCollection[];
  /** Changes with whatever is described. */
  version: string;
}

/**
 * The reader of a description: a publishable key learns nothing of protected and hidden fields, nor of collections in
 * which its rules admit no caller.
 */
export interface Audience {
  isPublic: boolean;
}

export async function describeProject(
  app: Pick<App, 'db'>,
  project: Pick<Project, '_id' | 'name'>,
  audience: Audience,
): Promise<DescribedProject> {
  return describeCollections(project.name, await listCollections(app, project._id), audience);
}

/** The collections of a project as its types tell of them. */
export function describeCollections(
  name: string,
  collections: readonly Collection[],
  { isPublic }: Audience,
): DescribedProject {
  const known = isPublic ? collections.filter((each) => each.name === USERS || !isServerOnly(each)) : collections;
  const sorted = [...known].sort((a, b) => compare(a.name, b.name));
  const typeNames = nameTypes(sorted.map((collection) => collection.name));
  return {
    name,
    collections: sorted.map(({ name: collection, mode, fields, rls, ...others }) => ({
      name: collection,
      typeName: typeNames.get(collection)!,
      isFlexible: mode === 'flexible',
      isUsers: collection === USERS,
      fields: sortFields(isPublic ? fields.flatMap(asPublic) : fields).filter(({ name }) => name !== HIDDEN_FIELD),
      ownerField: rls?.ownerField ?? null,
      filledIn: [...(rls ? [rls.ownerField] : []), ...namesWith(isPublic, fields, 'stamp')],
      setOnce: [...(rls ? [rls.ownerField] : []), ...namesWith(isPublic, fields, 'fixed')],
      access: accessLines({ rls, ...others }, isPublic),
    })),
    version: [
      name,
      isPublic,
      ...sorted.map((each) => [each._id, each.name, each.version, each.updatedAt.getTime()].join('.')),
    ].join(' '),
  };
}

function accessLines(access: CollectionAccess, isPublic: boolean): string[] {
  const word = accessWord(access);
  if (word !== 'rules') return [`${word}: ${ACCESS_SENTENCES[word]}`];
  const rules = rulesOf(access);
  return (['read', 'create', 'update', 'delete'] as const).map((name) => {
    const rule = rules[name];
    if (admitsAnyone(rule)) return `${name}: anyone`;
    if (admitsNobody(rule)) return `${name}: nobody but the secret key`;
    return `${name}: ${isPublic ? 'users whom its rule admits' : access.rules![name]}`;
  });
}

/** The secret key stands above what stamps and fixed fields ask of users. */
function namesWith(isPublic: boolean, fields: readonly Field[], mark: 'stamp' | 'fixed'): string[] {
  return isPublic ? fields.flatMap((field) => (field[mark] ? [field.name] : [])) : [];
}

/** A field as a publishable key may know it; one with a rule of its own may be left out of any document. */
function asPublic(field: Field): DescribedField[] {
  if (field.protected || field.hidden) return [];
  return field.read === undefined ? [field] : [{ ...field, required: false, isLeftOut: true }];
}

/** Names of types by name of collection; of `Posts` and `posts` the second is `Posts_2`. */
function nameTypes(names: readonly string[]): Map<string, string> {
  const taken = new Map<string, string>();
  const used = new Set<string>();
  for (const name of names) {
    const plain = name
      .split(/[-_]+/)
      .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
      .join('');
    let typeName = plain;
    for (let n = 2; used.has(typeName); n++) typeName = `${plain}_${n}`;
    used.add(typeName);
    taken.set(name, typeName);
  }
  return taken;
}

function sortFields(fields: readonly Field[]): Field[] {
  return fields.map((field) => ({ ...field, ...sortShape(field) })).sort((a, b) => compare(a.name, b.name));
}

function sortShape(shape: FieldShape): FieldShape {
  return {
    type: shape.type,
    ...(shape.ref !== undefined && { ref: shape.ref }),
    ...(shape.fields && { fields: sortFields(shape.fields) }),
    ...(shape.items && { items: sortShape(shape.items) }),
    ...Object.fromEntries(namesOf(shape).map((name) => [name, shape[name]])),
  };
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const BUILT_IN_ROLES: Field = { name: ROLES, type: 'Array', items: { type: 'String' } };

/** The fields of `users` that its documents show, declared or built in. */
export function storedFields({ isUsers, fields }: DescribedCollection): readonly Field[] {
  if (!isUsers) return fields;
  const shown = fields.filter(({ name }) => name !== 'password' && name !== EMAIL_VERIFIED);
  return shown.some(({ name }) => name === ROLES) ? shown : [...shown, BUILT_IN_ROLES];
}

/** The declared fields that a client may send in a new document. */
function sentFields({ fields }: DescribedCollection): readonly Field[] {
  return fields.filter((field) => !field.protected);
}

/** The same of a new document, of which some are filled in. */
export function insertedFields(collection: DescribedCollection): readonly Field[] {
  return sentFields(collection).map((field) =>
    collection.filledIn.includes(field.name) ? { ...field, required: false } : field,
  );
}

/** The declared fields that a client may send in a change: an owner is for ever, a password has a way of its own. */
export function changedFields(collection: DescribedCollection): readonly Field[] {
  return sentFields(collection).filter(
    ({ name }) => !collection.setOnce.includes(name) && !(collection.isUsers && name === 'password'),
  );
}

/** The publicly readable fields of `users`. */
export function publicFields({ fields }: DescribedCollection): readonly Field[] {
  return fields.filter((field) => field.public && field.name !== 'password');
}

/** The fields below a path that a query can name: others can be stored, but neither filtered nor sorted by. */
export function queriedFields(fields: readonly Field[], prefix: string): readonly Field[] {
  return fields.filter(({ name }) => isFieldPath(prefix + name));
}

/** The rules of a field in words, for people who read its type. */
export function describeConstraints(field: Field, { isSent = false } = {}): string {
  const rules = [
    field.type === 'Date' && (isSent ? 'A date, sent as ISO 8601 text' : 'A date as ISO 8601 text'),
    field.type === 'Ref' && (field.ref === undefined ? 'Id of a document' : `Id of a document of ${field.ref}`),
    field.required && 'Required',
    field.unique && 'Unique',
    field.nocase && 'Found, sorted and unique without regard to case',
    ...namesOf(field).map((name) => constraintRow(name).about(field[name])),
    field.default !== undefined && `Default ${JSON.stringify(field.default)}`,
    field.stamp !== undefined && 'Filled in with the id of the signed-in user',
    field.fixed && 'Fixed: users cannot change it afterwards',
    field.hidden && 'Hidden: the secret key alone sees and sets it',
    field.read !== undefined && `Left out unless ${field.read}`,
    field.write !== undefined && `Set where ${field.write}`,
    field.protected && 'Protected: users cannot set it',
    field.public && 'Public: part of public profiles',
  ];
  const told = rules.filter((rule) => rule !== false && rule !== undefined);
  return told.length === 0 ? '' : `${told.join('. ')}.`;
}
