import type { AccessWord, Rls, RlsMode, Collection } from '../../src/features/collections/collection.js';
import type { CollectionDeclaration } from '../../src/features/collections/schema/collection-declaration.js';
import { type Field, FIELD_TYPES, type FieldType } from '../../src/features/collections/fields/field.js';
import type { Context } from '../shell/context.js';
import type { CollectionEdit } from '../../src/features/collections/edit-collection.js';
import { FIELD_TYPE_RULES } from '../../src/features/collections/fields/field-type.js';
import { parseFieldSpec } from './field-spec.js';

/** Leads a person through the fields of a new collection. Answers given on the command line are kept. */
export async function askForCollection(context: Context, words: CollectionDeclaration): Promise<CollectionDeclaration> {
  const mode = await context.ask.choose<'enforced' | 'flexible'>('Which documents may it hold?', '', [
    { name: 'those that fit a schema', value: 'enforced', description: 'you declare the fields now' },
    { name: 'any JSON object', value: 'flexible', description: 'no fields need to be declared' },
  ]);
  const fields = mode === 'enforced' ? await askForFields(context) : [];
  return { ...words, mode, fields };
}

async function askForFields(context: Context): Promise<Field[]> {
  const fields: Field[] = [];
  for (;;) {
    const question =
      fields.length === 0 ? 'First field (a name, or all of it as title:String!)' : 'Next field (empty when done)';
    const field = await askForField(context, question, fields, fields.length > 0);
    if (field === null) return fields;
    fields.push(field);
  }
}

/** The strictest answer comes first: what is open by mistake is noticed too late. */
export async function askForAccess(context: Context): Promise<Pick<CollectionDeclaration, 'access' | 'ownerField'>> {
  const access = await context.ask.choose<AccessWord>('Who may access it?', '', [
    { name: 'only your server, with the secret key', value: 'server-only' },
    { name: 'signed-in users, each their own documents', value: 'private' },
    { name: 'everyone reads, signed-in users write their own documents', value: 'public-read' },
    { name: 'everyone reads, only your server writes', value: 'public' },
  ]);
  if (access === 'server-only' || access === 'public') return { access };
  return { access, ownerField: await askForOwnerField(context) };
}

function askForOwnerField(context: Context): Promise<string> {
  return context.ask.text('Field that holds the owner’s user id', '', { default: 'userId' });
}

/** The strictest answer comes first, as in askForAccess. */
export async function askForRls(context: Context): Promise<Rls | null> {
  const mode = await context.ask.choose<RlsMode | 'off'>('Who may read and write it with the publishable key?', '', [
    { name: 'signed-in users read and write their own', value: 'private' },
    { name: 'everyone reads, signed-in users write their own', value: 'public-read' },
    { name: 'everyone reads, only the secret key writes', value: 'off' },
  ]);
  if (mode === 'off') return null;
  return { mode, ownerField: await askForOwnerField(context) };
}

type Step = 'add' | 'set' | 'drop' | 'mode';

/** Asks for one change of a collection, at a terminal. */
export async function askForEdit(context: Context, { fields, mode, name }: Collection): Promise<CollectionEdit> {
  const other = mode === 'enforced' ? 'flexible' : 'enforced';
  const step = await context.ask.choose<Step>(`What is to change in ${name}?`, '', [
    { name: 'add a field', value: 'add' },
    ...(fields.length > 0
      ? [
          { name: 'change a field', value: 'set' as const },
          { name: 'no longer declare a field (its values stay stored)', value: 'drop' as const },
        ]
      : []),
    { name: other === 'flexible' ? 'store any JSON object' : 'check documents against the fields', value: 'mode' },
  ]);
  if (step === 'mode') return { mode: other };
  if (step === 'add') return { addFields: [(await askForField(context, 'Its name', fields, false))!] };
  const chosen = await context.ask.choose(
    'Which field?',
    '',
    fields.map((field) => ({ name: field.name, value: field.name })),
  );
  if (step === 'drop') return { dropFields: [chosen] };
  const field = await askForField(context, `All of it, as ${chosen}:String!`, [], false);
  return { setFields: [{ ...field!, name: chosen }] };
}

const ABOUT: Readonly<Record<FieldType, string>> = {
  String: 'text',
  Number: 'a number',
  Boolean: 'true or false',
  Date: 'a day or a moment',
  Object: 'an object with any fields',
  Array: 'a list',
  Ref: 'a document of a collection, or a user',
};

/**
 * Asks for one field: a whole spec, or a name and then its type and rules from lists. Null when the answer is empty,
 * which `mayEnd` allows.
 */
async function askForField(
  context: Context,
  question: string,
  taken: readonly { name: string }[],
  mayEnd: boolean,
): Promise<Field | null> {
  const answer = await context.ask.text(question, 'a field is missing: add --field <spec>', {
    check: (typed) => checkAnswer(typed.trim(), taken, mayEnd),
  });
  const name = answer.trim();
  if (name === '') return null;
  if (name.includes(':')) return parseFieldSpec(name);
  const type = await context.ask.choose<FieldType>(
    `What is ${name}?`,
    '',
    FIELD_TYPES.map((value) => ({ name: value, value, description: ABOUT[value] })),
  );
  const field: Field = { name, type };
  if (type === 'Ref') {
    const ref = await context.ask.text('Which collection does it point into?', '', { default: 'users' });
    field.ref = ref.trim();
  }
  if (await context.ask.yes('Must every document have it?', '')) field.required = true;
  if (FIELD_TYPE_RULES[type].canBeUnique && (await context.ask.yes('Must its values be unique?', ''))) {
    field.unique = true;
  }
  return field;
}

function checkAnswer(answer: string, taken: readonly { name: string }[], mayEnd: boolean): true | string {
  if (answer === '') return mayEnd || 'At least one field is required.';
  try {
    const { name } = parseFieldSpec(answer.includes(':') ? answer : `${answer}:String`);
    return taken.every((field) => field.name !== name) || `There is a field "${name}" already.`;
  } catch (error) {
    return (error as Error).message;
  }
}
