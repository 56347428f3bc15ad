import { FIELD_TYPE_RULES } from '../../src/features/collections/fields/field-type.js';
import { FIELD_TYPES, type Field, type FieldType } from '../../src/features/collections/fields/field.js';
import type { Context } from '../shell/context.js';
import { parseFieldSpec } from './field-spec.js';

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
export async function askForField(
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
