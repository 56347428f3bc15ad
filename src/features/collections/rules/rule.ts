/** A value that a rule can be written with. */
export type Literal = string | number | boolean;

/** A value that is known before any document is looked at: written in the rule, or an attribute of the caller. */
export type CallerValue =
  | { kind: 'literal'; value: Literal }
  | { kind: 'list'; values: readonly Literal[] }
  | { kind: 'attribute'; name: string };

/**
 * A condition of a rule. `equals` compares with one value, `among` with several; `holds` asks for a value in a list
 * that the document has. `at` is the place in the rule's text, counted from 0.
 */
export type RuleCondition =
  | { kind: 'signedIn'; at: number }
  | { kind: 'caller'; left: CallerValue; asks: 'equals' | 'among'; right: CallerValue; at: number }
  | { kind: 'document'; path: string; asks: 'equals' | 'among' | 'holds'; value: CallerValue; at: number };

/**
 * A rule as alternatives, of which one has to hold with all its conditions: `anyone` is an alternative without
 * conditions, `nobody` has no alternative.
 */
export interface Rule {
  alternatives: readonly (readonly RuleCondition[])[];
  /** Attributes of the caller that it names, `id` aside. */
  attributes: readonly string[];
  /** It asks who the caller is. */
  asksCaller: boolean;
}

/** What a rule may ask of the caller without reading the account. */
export const OWN_ID = 'id';

/** The rule that the alternatives make. */
export function ruleOf(alternatives: readonly (readonly RuleCondition[])[]): Rule {
  const conditions = alternatives.flat();
  const named = conditions.flatMap((condition) =>
    condition.kind === 'document'
      ? attributesOf(condition.value)
      : condition.kind === 'caller'
        ? [...attributesOf(condition.left), ...attributesOf(condition.right)]
        : [],
  );
  return {
    alternatives,
    attributes: [...new Set(named)].filter((name) => name !== OWN_ID),
    asksCaller: named.length > 0 || conditions.some(({ kind }) => kind === 'signedIn'),
  };
}

function attributesOf(value: CallerValue): string[] {
  return value.kind === 'attribute' ? [value.name] : [];
}

/** True of the rule `anyone`, whose filter leaves nothing out. */
export function admitsAnyone({ alternatives }: Rule): boolean {
  return alternatives.some((conditions) => conditions.length === 0);
}

/** True of the rule `nobody`. */
export function admitsNobody({ alternatives }: Rule): boolean {
  return alternatives.length === 0;
}

/** The paths of documents that rules name, each once. */
export function documentPaths(rules: readonly Rule[]): string[] {
  const conditions = rules.flatMap(({ alternatives }) => alternatives.flat());
  return [...new Set(conditions.flatMap((condition) => (condition.kind === 'document' ? [condition.path] : [])))];
}
