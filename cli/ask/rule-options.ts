import type { AccessRules } from '../../src/features/collections/collection.js';
import { RULE_NAMES } from '../../src/features/collections/rules/collection-rules.js';
import { option } from '../shell/command.js';

/** The rules of a collection, one option each. */
export const RULE_OPTIONS = {
  read: option('--read <rule>', 'who reads a document, in lists, joins and changes alike'),
  create: option('--create <rule>', 'who stores a document'),
  update: option('--update <rule>', 'who changes a document: holds before and afterwards'),
  delete: option('--delete <rule>', 'who trashes and removes a document'),
  updateTo: option('--update-to <rule>', 'what an update may lead to, where that is something else than --update'),
};

/** Those of the rules that the words name. */
export function givenRules(input: Partial<Record<keyof AccessRules, string | undefined>>): Partial<AccessRules> {
  return Object.fromEntries(RULE_NAMES.flatMap((name) => (input[name] === undefined ? [] : [[name, input[name]]])));
}
