import { RESERVED_KEYS } from '../../src/features/documents/query/parse-list-query.js';
import { list, type CommandParameter, option } from '../shell/command.js';
import { UsageError } from '../view/exit.js';
import { readUniqueText } from '../../src/exchange/unique-text.js';
import type { Unique } from '../../src/features/collections/fields/unique.js';
import type { AccessRules } from '../../src/features/collections/collection.js';
import { RULE_NAMES } from '../../src/features/collections/rules/collection-rules.js';

/**
 * The repeatable `--filter` of a command. Parameters of the request other than conditions are refused: those of lists,
 * and `own`; `options` are those of them that the command has as options.
 */
export function filterOption(
  options: readonly string[],
  own: ReadonlySet<string> = new Set(),
): CommandParameter<[name: string, value: string][]> {
  return list('--filter <field=value>', 'condition (repeatable, all must hold)', (text) => {
    const at = text.indexOf('=');
    if (at < 1) throw new Error('it must be field=value, or field_operator=value such as views_gt=10.');
    const name = text.slice(0, at);
    if (RESERVED_KEYS.has(name) || own.has(name)) {
      const instead = options.includes(name) ? `: there is --${name.replaceAll('_', '-')}` : '';
      throw new UsageError(`--filter ${name}=… is no condition${instead}.`);
    }
    return [name, text.slice(at + 1)] as [string, string];
  });
}

/** Reads `board,user` or `staff,at where status=booked`. */
export function readUniqueOption(text: string): Unique {
  const read = readUniqueText(text);
  if (!read) {
    throw new UsageError(`"${text}" is no unique: write fields, as board,user, or staff,at where status=booked.`);
  }
  return Object.keys(read.where).length > 0 ? read : read.fields;
}

/** The rules of a collection, one option each. */
export const RULE_OPTIONS = {
  read: option('--read <rule>', 'who may read documents, also in joins and change feeds'),
  create: option('--create <rule>', 'who may create documents'),
  update: option('--update <rule>', 'who may update documents, checked before and after the update'),
  delete: option('--delete <rule>', 'who may move documents to the trash and delete them'),
  updateTo: option('--update-to <rule>', 'rule for the updated document, if it differs from --update'),
};

/** Those of the rules that the words name. */
export function givenRules(input: Partial<Record<keyof AccessRules, string | undefined>>): Partial<AccessRules> {
  return Object.fromEntries(RULE_NAMES.flatMap((name) => (input[name] === undefined ? [] : [[name, input[name]]])));
}
