import type { AccessWord, Rls, RlsMode } from '../../src/features/collections/collection.js';
import type { CollectionDeclaration } from '../../src/features/collections/schema/collection-declaration.js';
import type { Field } from '../../src/features/collections/fields/field.js';
import type { Context } from '../shell/context.js';
import { askForField } from './ask-for-field.js';

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
