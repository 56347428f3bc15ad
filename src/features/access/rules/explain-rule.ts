import { serialize, type Document } from 'bson';
import type { App } from '../../../app.js';
import { loadMatchers } from '../../../platform/database/database.js';
import type { Collection } from '../../collections/collection.js';
import { rulesOf, type RuleName } from '../../collections/rules/collection-rules.js';
import { ruleOf, type RuleCondition, type RuleValue, type SetCondition } from '../../collections/rules/rule.js';
import type { Caller } from '../caller.js';
import { readAttributes } from './caller-attributes.js';
import { answerQuestions, findSetAge } from './access-sets.js';
import { admitsNothing, compileRule, filterOf, listQuestions } from './compile-rule.js';
import { boundValuesOfDocument } from './bound-values.js';

/** `depends`: on the document. */
export type Admits = 'yes' | 'no' | 'depends';

/** A rule with what it comes to for a caller, and for one document where that is given. */
export interface ExplainedRule {
  rule: RuleName;
  /** As it is stored, or as row-level security stands for it. */
  text: string;
  admits: Admits;
  alternatives: { admits: Admits; conditions: { text: string; admits: Admits }[] }[];
  /** Of documents that the rule admits; null for all of them. Not where a document is given. */
  filter?: Document | null;
  /** The caller's sets that were looked at, each with the number of its values and how old that is what reads know. */
  sets: { text: string; values: number; ageMs: number }[];
}

/**
 * How a rule of a collection comes to its verdict for the caller. With a document each condition is decided by what
 * that holds, else by the caller alone. 403 TOO_MANY_MEMBERSHIPS as for the request itself.
 */
export async function explainRule(
  app: App,
  collection: Collection,
  caller: Caller,
  name: RuleName,
  document?: Document,
): Promise<ExplainedRule> {
  const rule = rulesOf(collection)[name];
  const attributes = await readAttributes(app, caller, rule.attributes);
  const openMatcher = await loadMatchers();
  const bytes = document && Buffer.from(serialize(document));
  const boundValues = document && { boundValues: boundValuesOfDocument(document, rule.singlePaths) };
  const sets = new Map<string, { values: number; ageMs: number }>();
  const settle = async (conditions: readonly RuleCondition[]) => {
    const alone = ruleOf([conditions]);
    const facts = { attributes, ...boundValues };
    const questions = listQuestions([alone], facts);
    const answers = await answerQuestions(app, caller, attributes, questions);
    for (const { set } of listQuestions([alone], { attributes })) {
      if (sets.has(set.text)) continue;
      const whole = await answerQuestions(app, caller, attributes, [{ set, path: null }]);
      const [values] = [...whole.values()];
      const ageMs = await findSetAge(app, caller, attributes, set);
      sets.set(set.text, { values: Array.isArray(values) ? values.length : 0, ageMs });
    }
    return compileRule(alone, { ...facts, answers });
  };
  const verdictOf = async (
    conditions: readonly RuleCondition[],
  ): Promise<{ admits: Admits; filter: Document | null }> => {
    const compiled = await settle(conditions);
    const filter = filterOf(compiled);
    if (filter === null) return { admits: 'yes', filter };
    if (admitsNothing(compiled)) return { admits: 'no', filter };
    if (!bytes) return { admits: 'depends', filter };
    return { admits: openMatcher(filter).matches(bytes) ? 'yes' : 'no', filter };
  };
  const alternatives: ExplainedRule['alternatives'] = [];
  const filters: Document[] = [];
  for (const conditions of rule.alternatives) {
    const told: ExplainedRule['alternatives'][number]['conditions'] = [];
    for (const condition of conditions) {
      const { admits } = await verdictOf([condition]);
      told.push({ text: presentCondition(condition), admits });
    }
    const { admits, filter } = await verdictOf(conditions);
    if (admits === 'depends' && filter) filters.push(filter);
    alternatives.push({ admits, conditions: told });
  }
  const verdicts = alternatives.map(({ admits }) => admits);
  const admits = (['yes', 'depends'] as const).find((verdict) => verdicts.includes(verdict)) ?? 'no';
  const filter = admits === 'yes' ? null : filters.length === 1 ? filters[0]! : { $or: filters };
  return {
    rule: name,
    text: textOf(collection, name),
    admits,
    alternatives,
    ...(!document && admits !== 'no' && { filter }),
    sets: [...sets].map(([text, found]) => ({ text: presentSetText(text, rule.sets), ...found })),
  };
}

/** Whether a rule admits a document to the caller; for `create` the document as it would be stored. */
export async function admitsDocument(
  app: App,
  collection: Collection,
  caller: Caller,
  name: RuleName,
  document: Document,
): Promise<boolean> {
  return (await explainRule(app, collection, caller, name, document)).admits === 'yes';
}

function textOf(collection: Collection, name: RuleName): string {
  const { rules } = collection;
  if (rules) return rules[name] ?? (name === 'updateTo' ? rules.update : 'nobody');
  const parsed = rulesOf(collection)[name];
  if (parsed.alternatives.length === 0) return 'nobody';
  return parsed.alternatives
    .map((conditions) => conditions.map(presentCondition).join(' and ') || 'anyone')
    .join(' or ');
}

/** A condition as it is written in a rule. */
function presentCondition(condition: RuleCondition): string {
  if (condition.kind === 'signedIn') return 'user';
  if (condition.kind === 'caller') {
    return `${presentValue(condition.left)} ${condition.asks === 'among' ? 'in' : '='} ${presentValue(condition.right)}`;
  }
  const { path, asks, value } = condition;
  if (asks === 'holds') return `${presentValue(value)} in doc.${path}`;
  return `doc.${path} ${asks === 'among' ? 'in' : '='} ${presentValue(value)}`;
}

function presentValue(value: RuleValue): string {
  if (value.kind === 'attribute') return `user.${value.name}`;
  if (value.kind === 'literal') return JSON.stringify(value.value);
  if (value.kind === 'list') return `[${value.values.map((each) => JSON.stringify(each)).join(', ')}]`;
  const { collection, userPath, userAsks, conditions, path } = value.set;
  const own = userAsks === 'holds' ? `user.id in ${userPath}` : `${userPath} = user.id`;
  return `${collection}[${[own, ...conditions.map(presentSetCondition)].join(' and ')}].${path}`;
}

function presentSetCondition({ path, asks, value }: SetCondition): string {
  if (asks === 'holds') return `${presentValue(value)} in ${path}`;
  return `${path} ${asks === 'among' ? 'in' : '='} ${presentValue(value)}`;
}

function presentSetText(text: string, sets: readonly Extract<RuleValue, { kind: 'set' }>['set'][]): string {
  const set = sets.find((each) => each.text === text);
  return set ? presentValue({ kind: 'set', set }) : text;
}
