import type { Collection } from '../../src/features/collections/collection.js';
import type { CollectionEdit } from '../../src/features/collections/edit-collection.js';
import type { Context } from '../shell/context.js';
import { askForField } from './ask-for-field.js';

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
