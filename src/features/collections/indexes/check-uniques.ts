import { invalid } from '../../../errors.js';
import type { Collection } from '../collection.js';
import { FIELD_TYPE_RULES } from '../fields/field-type.js';

const MAX_UNIQUES = 10;
const MAX_TOGETHER = 4;

/** 400 INVALID_UNIQUE unless each list names two to four declared fields whose values can be unique, each list once. */
export function checkUniques({ uniques = [], fields, rls }: Pick<Collection, 'uniques' | 'fields' | 'rls'>): void {
  if (uniques.length > MAX_UNIQUES) throw refusal(`A collection has at most ${MAX_UNIQUES} lists of unique fields`);
  for (const names of uniques) {
    const text = names.join(',');
    if (names.length < 2 || names.length > MAX_TOGETHER || new Set(names).size < names.length) {
      throw refusal(`"${text}" must name two to ${MAX_TOGETHER} fields, as board,user`);
    }
    for (const name of names) {
      const declared = fields.find((field) => field.name === name);
      const type = declared?.type ?? (name === rls?.ownerField ? 'String' : null);
      if (type === null || name.includes(',')) throw refusal(`"${text}" names "${name}", which is no declared field`);
      if (!FIELD_TYPE_RULES[type].canBeUnique) throw refusal(`"${name}" cannot be unique: it is of type ${type}`);
    }
  }
  if (new Set(uniques.map((names) => [...names].sort().join())).size < uniques.length) {
    throw refusal('The same fields are asked to be unique twice');
  }
}

function refusal(message: string): Error {
  return invalid('INVALID_UNIQUE', message.length > 300 ? `${message.slice(0, 300)}…` : message);
}
