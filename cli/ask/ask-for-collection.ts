import type { RlsMode } from '../../src/features/collections/collection.js';
import type { CollectionDeclaration } from '../../src/features/collections/schema/collection-declaration.js';
import type { Field } from '../../src/features/collections/fields/field.js';
import type { Context } from '../shell/context.js';
import { parseFieldSpec } from './field-spec.js';

/** Leads a person through fields and access of a new collection. Answers given on the command line are kept. */
export async function askForCollection(context: Context, words: CollectionDeclaration): Promise<CollectionDeclaration> {
  const mode = await context.ask.choose<'enforced' | 'flexible'>('Which documents may it hold?', '', [
    { name: 'those that fit a schema', value: 'enforced', description: 'you declare the fields now' },
    { name: 'any JSON object', value: 'flexible', description: 'no fields need to be declared' },
  ]);
  const fields = mode === 'enforced' ? await askForFields(context) : [];
  const rls = words.rls ?? (await askForRls(context));
  return { ...words, mode, fields, rls };
}

async function askForFields(context: Context): Promise<Field[]> {
  const fields: Field[] = [];
  for (;;) {
    const spec = await context.ask.text(
      fields.length === 0 ? 'First field, for example title:String!' : 'Next field (empty when done)',
      'a field is missing: add --field <spec>',
      { check: (answer) => checkSpec(answer, fields) },
    );
    if (spec.trim() === '') return fields;
    fields.push(parseFieldSpec(spec.trim()));
  }
}

function checkSpec(answer: string, fields: readonly Field[]): true | string {
  if (answer.trim() === '') return fields.length > 0 || 'At least one field is required.';
  try {
    const { name } = parseFieldSpec(answer.trim());
    return fields.every((field) => field.name !== name) || `There is a field "${name}" already.`;
  } catch (error) {
    return (error as Error).message;
  }
}

async function askForRls(context: Context): Promise<CollectionDeclaration['rls']> {
  const mode = await context.ask.choose<RlsMode | 'off'>('Who may read and write it with the publishable key?', '', [
    { name: 'everybody reads, only the secret key writes', value: 'off' },
    { name: 'everybody reads, signed-in users write their own', value: 'public-read' },
    { name: 'signed-in users read and write their own', value: 'private' },
  ]);
  if (mode === 'off') return null;
  const ownerField = await context.ask.text('Field that holds the owner’s user id', '', { default: 'userId' });
  return { mode, ownerField };
}
