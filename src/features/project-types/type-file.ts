import { ownTurn } from '../../scheduler.js';
import type { Field, FieldShape } from '../collections/fields/field.js';
import {
  changedFields,
  isAlwaysThere,
  publicFields,
  queriedFields,
  insertedFields,
  storedFields,
  describeConstraints,
  type DescribedCollection,
  type DescribedProject,
} from './described-project.js';

/** The direction of a type's documents: as they are answered, or as they are sent. */
type Direction = 'shown' | 'sent';

const HEAD = `/* The collections of a project as types, made by bsvc. Do not edit: \`bsvc generate types\` writes this file anew. */`;

/** The `types.d.ts` of a project: for each collection its documents, what may be sent, and what refers to what. */
export async function writeTypeFile(project: DescribedProject): Promise<string> {
  const known = new Map(project.collections.map((collection) => [collection.name, collection]));
  const parts = [HEAD];
  for (const collection of project.collections) {
    parts.push(...writeCollection(collection, known));
    await ownTurn();
  }
  parts.push(writeProject(project));
  return `${parts.join('\n\n')}\n`;
}

function writeProject({ collections }: DescribedProject): string {
  const members = collections.flatMap((collection) => {
    const { name, typeName, isUsers } = collection;
    return [
      `  ${key(name)}: {`,
      ...['Document', 'Insert', 'Update', 'Refs', 'Fields'].map((part) => `    ${part}: ${typeName}${part};`),
      `    Open: ${openOf(collection)};`,
      ...(isUsers ? [`    Public: ${typeName}Public;`] : []),
      '  };',
    ];
  });
  return `/** The collections by name: the type argument of \`createClient<Project>()\`. */\n${block('export interface Project', members)}`;
}

/** The undeclared paths of a collection's `Fields`, as a type. */
function openOf(collection: DescribedCollection): string {
  if (collection.isFlexible) return 'string';
  const free = readPaths(storedFields(collection), (shape, path) => (isOpen(shape) ? [path] : []));
  return free.length === 0 ? 'never' : free.map(openPattern).join(' | ');
}

/** What `read` makes of each field by its path, through arrays as the database does. */
function readPaths(
  fields: readonly Field[],
  read: (shape: FieldShape, path: string) => string[],
  prefix = '',
): string[] {
  const readShape = (shape: FieldShape, path: string): string[] => {
    if (shape.type === 'Array' && shape.items) return readShape(shape.items, path);
    const inner = shape.type === 'Object' && shape.fields ? readPaths(shape.fields, read, `${path}.`) : [];
    return [...read(shape, path), ...inner];
  };
  return queriedFields(fields, prefix).flatMap((field) => readShape(field, prefix + field.name));
}

const isOpen = ({ type, fields }: FieldShape): boolean => type === 'Object' && !fields;

/** Paths and the values that they are compared with. */
function comparedMember(shape: FieldShape, path: string): string[] {
  if (shape.type === 'Array') return [`  ${key(path)}: unknown;`];
  if (shape.type !== 'Object') return [`  ${key(path)}: ${typeOf(shape, 'sent', '')};`];
  return [`  ${key(path)}: never;`, ...(shape.fields ? [] : [`  ${openKey(path)}: unknown;`])];
}

type Known = ReadonlyMap<string, DescribedCollection>;

function writeCollection(collection: DescribedCollection, known: Known): string[] {
  const { name, typeName, isUsers, isFlexible } = collection;
  const open = isFlexible ? ['  [field: string]: unknown;'] : [];
  const of = isUsers ? 'end users' : `\`${name}\``;
  const write = (part: string, about: string, lines: string[]): string =>
    `${comment(about)}${block(`export interface ${typeName}${part}`, lines)}`;
  const shown = storedFields(collection);
  const refMember = ({ type, ref }: FieldShape, path: string): string[] =>
    type === 'Ref' && ref !== undefined && known.has(ref) ? [`  ${key(path)}: ${literal(ref)};`] : [];
  const parts = [
    write('Document', `A document of ${of} as the service answers it.`, [
      '  readonly _id: string;',
      ...members(shown, 'shown', isFlexible),
      ...ownerMember(collection, 'The id of the user who owns the document.'),
      ...systemMembers(isUsers),
      ...open,
    ]),
    write('Insert', `What a new document of ${of} is made of.`, [
      ...members(insertedFields(collection), 'sent', isFlexible),
      ...ownerMember(collection, 'The owner; filled in from the signed-in user.'),
      ...open,
    ]),
    write(
      'Update',
      `Changes of a document of ${of}: only what is given changes; null sets a field back to its default, or takes it out.`,
      [...changes(changedFields(collection), '', isFlexible), ...open],
    ),
    write(
      'Refs',
      `Where documents of ${of} name other documents, and of which collection.`,
      readPaths(shown, refMember),
    ),
    write('Fields', `What lists of ${of} are filtered and sorted by.`, [
      '  _id: string;',
      ...readPaths(shown, comparedMember),
      ...(collection.ownerField !== null && !has(shown, collection.ownerField)
        ? [`  ${key(collection.ownerField)}: string;`]
        : []),
      ...(isUsers ? ['  emailVerified: boolean;'] : []),
      '  createdAt: string | Date;',
      '  updatedAt: string | Date;',
      ...open,
    ]),
  ];
  if (isUsers) {
    const lines = ['  readonly _id: string;', ...members(publicFields(collection), 'shown', true)];
    parts.push(write('Public', 'What everybody may see of an end user.', lines));
  }
  return parts;
}

const has = (fields: readonly Field[], name: string): boolean => fields.some((field) => field.name === name);

function systemMembers(isUsers: boolean): string[] {
  const moments = ['  readonly createdAt: string;', '  readonly updatedAt: string;'];
  if (isUsers) return ['  readonly emailVerified: boolean;', ...moments];
  return ['  readonly isDeleted: boolean;', '  readonly deletedAt: string | null;', ...moments];
}

function ownerMember(collection: DescribedCollection, about: string): string[] {
  const { ownerField, fields } = collection;
  return ownerField === null || has(fields, ownerField) ? [] : [`  /** ${about} */`, `  ${key(ownerField)}?: string;`];
}

/** The members of an interface, each with its rules. */
function members(fields: readonly Field[], direction: Direction, allOptional: boolean, indent = '  '): string[] {
  return fields.flatMap((field) => {
    const isThere = direction === 'shown' ? isAlwaysThere(field) : field.required;
    const mark = isThere && !allOptional ? '' : '?';
    return [
      ...rulesOf(field, direction, indent),
      `${indent}${key(field.name)}${mark}: ${typeOf(field, direction, indent)};`,
    ];
  });
}

/** Each field that can change, and by a dotted name each that lies inside an object. */
function changes(fields: readonly Field[], prefix: string, allOptional: boolean): string[] {
  return fields.flatMap((field) => {
    const path = prefix + field.name;
    const cleared = field.required && !allOptional ? '' : ' | null';
    return [
      ...rulesOf(field, 'sent', '  '),
      `  ${key(path)}?: ${typeOf(field, 'sent', '  ')}${cleared};`,
      ...(field.type !== 'Object'
        ? []
        : field.fields
          ? changes(field.fields, `${path}.`, allOptional)
          : [`  ${openKey(path)}: unknown;`]),
    ];
  });
}

function typeOf(shape: FieldShape, direction: Direction, indent: string): string {
  if (shape.enum) return shape.enum.map((value) => (typeof value === 'string' ? literal(value) : value)).join(' | ');
  switch (shape.type) {
    case 'String':
    case 'Ref':
      return 'string';
    case 'Number':
      return 'number';
    case 'Boolean':
      return 'boolean';
    case 'Date':
      return direction === 'sent' ? 'string | Date' : 'string';
    case 'Array': {
      const items = shape.items ? typeOf(shape.items, direction, indent) : 'unknown';
      return items.includes(' | ') && !items.startsWith('{') ? `(${items})[]` : `${items}[]`;
    }
    case 'Object':
      if (!shape.fields) return 'Record<string, unknown>';
      return ['{', ...members(shape.fields, direction, false, `${indent}  `), `${indent}}`].join('\n');
  }
}

function rulesOf(field: Field, direction: Direction, indent: string): string[] {
  const told = describeConstraints(field, { isSent: direction === 'sent' });
  return told === '' ? [] : [`${indent}/** ${told.replaceAll('*/', '*\\/')} */`];
}

const comment = (text: string): string => `/** ${text} */\n`;

const block = (head: string, lines: readonly string[]): string =>
  lines.length === 0 ? `${head} {}` : `${head} {\n${lines.join('\n')}\n}`;

/** A name as a member of an interface. */
function key(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name);
}

/** Every path inside an object with undeclared fields. */
const openKey = (path: string): string => `[path: ${openPattern(path)}]`;

function openPattern(path: string): string {
  const text = path.replace(/[\\`$]/g, (sign) => `\\${sign}`).replace(/[\u2028\u2029]/g, unicodeEscape);
  return `\`${text}.\${string}\``;
}

function literal(text: string): string {
  const inner = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `'${inner.replace(/[\u2028\u2029]/g, unicodeEscape)}'`;
}

const unicodeEscape = (sign: string): string => `\\u${sign.charCodeAt(0).toString(16)}`;
