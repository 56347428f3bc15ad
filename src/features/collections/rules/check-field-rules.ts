import { invalid } from '../../../errors.js';
import { readUnique } from '../fields/unique.js';
import type { Collection } from '../collection.js';
import type { Field } from '../fields/field.js';
import { checkRuleText, type RuleSurroundings } from './check-rules.js';
import { fieldRulesOf, hasRules } from './field-rules.js';
import { rulesOf, setPaths } from './collection-rules.js';
import { documentPaths } from './rule.js';

type Checked = Pick<Collection, 'name' | 'fields' | 'rls' | 'rules' | 'isPublic' | 'indexes' | 'uniques' | 'namedBy'>;

/** Types whose values are one entry of an index. */
const SINGLE: ReadonlySet<Field['type']> = new Set(['String', 'Number', 'Boolean', 'Date', 'Ref']);

/**
 * The rules of fields (rules.md 7): 400 INVALID_RULE with the place of a mistake, and for a field that a rule names, as
 * what the rule admits would tell of it. 400 INVALID_INDEX or INVALID_UNIQUE where a refused write could tell of a
 * value that is not shown.
 */
export function checkFieldRules(collection: Checked, surroundings: RuleSurroundings): void {
  const { name, fields, rls, indexes, uniques = [] } = collection;
  const ruled = fields.filter(hasRules);
  if (ruled.length === 0) return;
  for (const field of ruled) {
    for (const mark of ['read', 'write'] as const) {
      const text = field[mark];
      if (text === undefined) continue;
      checkRuleText(collection, surroundings, `fields.${field.name}.${mark}`, text, { hasSets: mark === 'write' });
    }
  }
  const rules = [
    ...Object.values(rulesOf(collection)),
    ...fieldRulesOf(fields).flatMap(({ read, write }) => [read, write]),
  ];
  const paths = [rls?.ownerField, ...documentPaths(rules), ...setPaths(collection)];
  const named = new Set(paths.map((path) => path?.split('.')[0]));
  for (const field of ruled) {
    const mark = field.hidden ? 'hidden' : field.read === undefined ? 'write' : 'read';
    const place = `fields.${field.name}.${mark}`;
    if (named.has(field.name)) {
      const message = `${place}: a rule of "${name}" names this field, so what the rule admits would tell of it`;
      const details = [{ field: place, rule: '0', message }];
      throw invalid('INVALID_RULE', `Invalid rule of "${name}": ${message}`, { details });
    }
    if (
      mark !== 'write' &&
      uniques.map(readUnique).some(({ fields: names, where }) => [...names, ...Object.keys(where)].includes(field.name))
    ) {
      const message = `${field.name} is not shown to everybody: a value that is taken could tell of it`;
      throw invalid('INVALID_UNIQUE', message, { details: [{ field: place, rule: 'unique', message }] });
    }
    const isIndexed = indexes.some((spec) => spec.split(',').some((part) => isAtField(part, field.name)));
    if (isIndexed && mark !== 'write' && !SINGLE.has(field.type)) {
      const message = `${field.name} is of type ${field.type} and not shown to everybody: an index of it could tell of its value`;
      throw invalid('INVALID_INDEX', message, { details: [{ field: place, rule: 'index', message }] });
    }
  }
}

/** A part of an index such as `-place.city` or `place:2dsphere` is of the field `place`. */
function isAtField(part: string, name: string): boolean {
  return part.replace(/^-/, '').split(/[.:]/)[0] === name;
}
