import type { Collection } from '../collection.js';
import { rulesOf, type RuleName } from './collection-rules.js';
import type { Rule, RuleCondition } from './rule.js';

/** Who may do something with the publishable key. Everyone can sign up, so signed-in users may be anyone. */
const AUDIENCES = ['everyone', 'signed-in users'] as const;

interface Exposure {
  action: Exclude<RuleName, 'updateTo'>;
  who: (typeof AUDIENCES)[number];
  /** Only with documents for which the rule holds, such as their own. */
  some: boolean;
}

const ACTIONS = ['read', 'create', 'update', 'delete'] as const;

/** What callers with the publishable key may do in a collection; empty for the secret key only. */
export function listExposures(collection: Pick<Collection, 'rls' | 'rules' | 'isPublic'>): Exposure[] {
  const rules = rulesOf(collection);
  return ACTIONS.flatMap((action) => {
    const widest = widestOf(rules[action]);
    return widest ? [{ action, ...widest }] : [];
  });
}

function widestOf({ alternatives }: Rule): Omit<Exposure, 'action'> | null {
  const found = alternatives.map((conditions) => ({
    who: conditions.some(asksCaller) ? AUDIENCES[1] : AUDIENCES[0],
    some: conditions.some(({ kind }) => kind !== 'signedIn'),
  }));
  const rank = ({ who, some }: Omit<Exposure, 'action'>): number => AUDIENCES.indexOf(who) * 2 + Number(some);
  return found.sort((a, b) => rank(a) - rank(b))[0] ?? null;
}

function asksCaller(condition: RuleCondition): boolean {
  if (condition.kind !== 'document') return true;
  return condition.value.kind === 'attribute' || condition.value.kind === 'set';
}

const VERBS: Readonly<Record<Exposure['action'], string>> = {
  read: 'read',
  create: 'create',
  update: 'change',
  delete: 'delete',
};

/** The exposures in words, such as "everyone can read; signed-in users can create, change, delete some documents". */
export function presentExposures(exposures: readonly Exposure[]): string {
  const groups = new Map<string, string[]>();
  for (const { action, who, some } of exposures) {
    const group = `${who} can {} ${some ? 'some documents' : 'all documents'}`;
    groups.set(group, [...(groups.get(group) ?? []), VERBS[action]]);
  }
  return [...groups].map(([group, verbs]) => group.replace('{}', verbs.join(', '))).join('; ');
}
