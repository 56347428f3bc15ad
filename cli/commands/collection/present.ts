import type { Field } from '../../../src/features/collections/fields/field.js';
import { ACCESS_SENTENCES, RULE_NAMES } from '../../../src/features/collections/rules/collection-rules.js';
import { USERS } from '../../../src/features/collections/users-collection.js';
import type { presentCollection } from '../../../src/features/collections/present-collection.js';
import { writeExpire } from '../../../src/features/collections/fields/expire.js';
import { writeUnique } from '../../../src/features/collections/fields/unique.js';
import { presentType } from '../../ask/present-field-spec.js';
import type { TextStyle } from '../../view/output.js';

type Shown = ReturnType<typeof presentCollection>;

/** A collection for a person: one line about its rules, then its fields. */
export async function presentCollectionText(view: TextStyle, collection: Shown): Promise<string> {
  const head = `${view.paint.bold(collection.name)} (${collection.id}), ${collection.mode}, ${presentCollectionAccess(collection)}`;
  const together = collection.uniques ? `\nunique together: ${collection.uniques.map(writeUnique).join(' · ')}` : '';
  const expire = collection.expire ? `\nexpire: ${writeExpire(collection.expire)}` : '';
  const indexes =
    (collection.indexes.length > 0 ? `\nindexed: ${collection.indexes.join(' · ')}` : '') + together + expire;
  const rules = collection.access === 'rules' ? `\n${presentRules(collection)}` : '';
  if (collection.fields.length === 0) {
    return `${head}${indexes}${rules}\nNo declared fields: any JSON object is stored.`;
  }
  const table = await view.table(
    ['field', 'type', 'rules', 'default'],
    collection.fields.map((field) => [
      field.name,
      presentType(field),
      presentMarks(field),
      field.default === undefined ? '' : JSON.stringify(field.default),
    ]),
  );
  return `${head}${indexes}${rules}\n${table}`;
}

/** Who may access the collection, short. */
export function presentCollectionAccess({ name, access, rls }: Shown): string {
  if (name === USERS) return 'reached through /api/userAuth only';
  if (access === 'rules') return 'access by rules';
  return 'mode' in rls ? `${access}, owner field ${rls.ownerField}` : access;
}

/** Who may access the collection, in words, and the commands that change it. */
export function presentAccessText({ name, access }: Shown): string {
  const others = [
    access === 'public' ? `bsvc collection rls ${name} --server-only` : `bsvc collection rls ${name} --public`,
    ...(access === 'server-only' ? [`bsvc collection rls ${name} --mode private`] : []),
    ...(access === 'public' || access === 'server-only' ? [] : [`bsvc collection rls ${name} --server-only`]),
  ];
  return `Access: ${access}: ${ACCESS_SENTENCES[access]}\nTo change it: ${others.join(', or ')}`;
}

/** The rules, one a line. */
export function presentRules({ rules }: Shown): string {
  if (!rules) return 'no rules';
  const lines = RULE_NAMES.flatMap((name) => (rules[name] === undefined ? [] : `  ${name}: ${rules[name]}`));
  return ['rules', ...lines].join('\n');
}

function presentMarks(field: Field): string {
  const flags = (
    ['required', 'unique', 'nocase', 'stamp', 'fixed', 'hook', 'hidden', 'protected', 'public'] as const
  ).filter((mark) => field[mark]);
  const rules = (['read', 'write'] as const).flatMap((mark) =>
    field[mark] === undefined ? [] : [`${mark}: ${field[mark]}`],
  );
  return [...flags, ...rules].join(', ');
}
