/** A value that a rule can be written with. */
export type Literal = string | number | boolean;

/**
 * A value that is known before any document is looked at: written in the rule, or an attribute of the caller. Of a list
 * `places` are those of its values.
 */
export type CallerValue =
  | { kind: 'literal'; value: Literal }
  | { kind: 'list'; values: readonly Literal[]; places: readonly number[] }
  | { kind: 'attribute'; name: string };

/**
 * Where the parts of a condition stand in the rule's text, counted from 0: the document's side, of two sides of the
 * caller the left one; the operator; the other side. Where nothing is written for a part, it is that of the condition.
 */
export interface Places {
  path: number;
  operator: number;
  value: number;
}

/** A condition on the documents of a set's collection; `asks` is what it is in RuleCondition. */
export interface SetCondition {
  path: string;
  asks: 'equals' | 'among' | 'holds';
  value: CallerValue;
  places: Places;
}

/**
 * The values that documents of a collection hold at `path`, of those documents that belong to the caller: they are
 * asked for `user.id` at `userPath`, and meet the other conditions too (rules.md 5).
 */
export interface CallerSet {
  collection: string;
  userPath: string;
  /** The field holds one user, or a list of them. */
  userAsks: 'equals' | 'holds';
  conditions: readonly SetCondition[];
  path: string;
  /** Sets that ask for the same have the same text, wherever they stand. */
  text: string;
  places: { set: number; path: number; user: Places };
}

/** What a value can be looked for in. */
export type RuleValue = CallerValue | { kind: 'set'; set: CallerSet };

/**
 * A condition of a rule. `equals` compares with one value, `among` with several; `holds` asks for a value in a list
 * that the document has.
 */
export type RuleCondition =
  | { kind: 'signedIn' }
  | { kind: 'caller'; left: CallerValue; asks: 'equals' | 'among'; right: RuleValue; places: Places }
  | { kind: 'document'; path: string; asks: 'equals' | 'among' | 'holds'; value: RuleValue; places: Places };

/** For JSON.stringify: a condition by its meaning, wherever it stands. */
export const withoutPlaces = (name: string, value: unknown): unknown => (name === 'places' ? undefined : value);

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
  /** Each once. */
  sets: readonly CallerSet[];
  /** Paths of documents that it names and that are declared to hold one value. */
  singlePaths: readonly string[];
}

/** The path by which a rule names a document's own id. */
export const ID_PATH = 'id';

/** What a rule may ask of the caller without reading the account. */
export const OWN_ID = 'id';

/** The rule that the alternatives make. */
export function ruleOf(alternatives: readonly (readonly RuleCondition[])[]): Rule {
  const conditions = alternatives.flat();
  const values = conditions.flatMap((condition): RuleValue[] =>
    condition.kind === 'document'
      ? [condition.value]
      : condition.kind === 'caller'
        ? [condition.left, condition.right]
        : [],
  );
  const named = values.flatMap(attributesOf);
  const sets = values.flatMap((value) => (value.kind === 'set' ? [value.set] : []));
  return {
    alternatives,
    attributes: [...new Set(named)].filter((name) => name !== OWN_ID),
    asksCaller: named.length > 0 || conditions.some(({ kind }) => kind === 'signedIn'),
    singlePaths: singlePathsOf(conditions),
    sets: [...new Map(sets.map((set) => [set.text, set])).values()],
  };
}

function singlePathsOf(conditions: readonly RuleCondition[]): string[] {
  const paths = conditions.flatMap((condition) =>
    condition.kind === 'document' && condition.asks !== 'holds' ? [condition.path] : [],
  );
  return [...new Set(paths)];
}

export const ANYONE: Rule = ruleOf([[]]);
export const NOBODY: Rule = ruleOf([]);

function attributesOf(value: RuleValue): string[] {
  if (value.kind !== 'set') return value.kind === 'attribute' ? [value.name] : [];
  return [OWN_ID, ...value.set.conditions.flatMap((condition) => attributesOf(condition.value))];
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
