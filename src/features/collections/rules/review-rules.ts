import type { App } from '../../../app.js';
import { AppError, type FieldProblem, type Mistake } from '../../../errors.js';
import type { AccessRules, Collection } from '../collection.js';
import {
  PUBLIC_ACCESS,
  RULE_NAMES,
  SERVER_ONLY,
  type CollectionAccess,
  keyPaths,
  parsedRules,
} from './collection-rules.js';
import { listLoosenedAccess } from './compare-rules.js';
import { requireKnownNames } from './require-sound-rules.js';
import { requireNoRuleViolations } from './rule-violations.js';
import { admitsAnyone, ID_PATH } from './rule.js';

/** Something that is wrong with the rules of a collection, or that costs much. */
export interface RuleFinding {
  collection: string;
  /** `UNINDEXED` alone is no error. */
  code: string;
  message: string;
  details?: FieldProblem[];
  /** For people, as an error has it. */
  mistake?: Mistake;
}

interface Review {
  /** Stored documents too: whether they are what the rules take them for. */
  data: boolean;
}

/**
 * Looks at the rules of a collection as they stand in it, stored or not (rules.md 10): grammar, names and types of each
 * rule, then alternatives without an index, and stored documents.
 */
export async function reviewRules(app: App, collection: Collection, review: Review): Promise<RuleFinding[]> {
  const { rules } = collection;
  // Each rule beside none: the mistake of one does not hide that of another.
  const alone: (AccessRules | null)[] = rules
    ? RULE_NAMES.flatMap((name) => (rules[name] === undefined ? [] : [{ ...SERVER_ONLY, [name]: rules[name] }]))
    : [null];
  const mistakes = new Map<string, RuleFinding>();
  for (const each of alone) {
    const found = await findError(collection, () => requireKnownNames(app, { ...collection, rules: each }));
    // Those of fields are found beside each.
    for (const mistake of found) mistakes.set(mistake.message, mistake);
  }
  return mistakes.size > 0 ? [...mistakes.values()] : reviewNamedRules(app, collection, review);
}

/** As reviewRules, of rules whose names are known to be right. */
export async function reviewNamedRules(app: App, collection: Collection, { data }: Review): Promise<RuleFinding[]> {
  const violations = data ? await findError(collection, () => requireNoRuleViolations(app, null, collection)) : [];
  return [...violations, ...findUnindexed(collection)];
}

/** The alternatives of the rule `read` that no index serves. */
export function findUnindexed(collection: Pick<Collection, 'name' | 'rules'>): RuleFinding[] {
  return listUnindexedPaths(collection).map((path) => ({
    collection: collection.name,
    code: 'UNINDEXED',
    message: `rule read: no index finds documents by doc.${path}, so a list may look at all of them`,
  }));
}

/**
 * reviewRules of rules that the collection does not have yet, with the access that they add to its own;
 * undefined: of its own.
 */
export async function reviewNewRules(
  app: App,
  current: Collection,
  rules: AccessRules | null | undefined,
  review: Review,
): Promise<{ findings: RuleFinding[]; loosens: string[] }> {
  const next = rules === undefined ? current : withRules(current, rules);
  const findings = await reviewRules(app, next, review);
  const isReadable = findings.every(({ code }) => !code.startsWith('INVALID_'));
  return { findings, loosens: isReadable ? listLoosenedAccess(current, next) : [] };
}

/** The collection with other rules, which take the place of row-level security; null makes it public. */
export function withRules<T extends CollectionAccess>(current: T, rules: AccessRules | null): T {
  return { ...current, ...(rules ? { rules, rls: null, isPublic: false } : PUBLIC_ACCESS) };
}

async function findError({ name }: Collection, check: () => Promise<void>): Promise<RuleFinding[]> {
  try {
    await check();
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { code, message, details, mistake } = error;
    return [{ collection: name, code, message, ...(details && { details }), ...(mistake && { mistake }) }];
  }
}

/** A finding for programs, to whom `details` say the place. */
export function presentFinding({ mistake: _, ...finding }: RuleFinding): Omit<RuleFinding, 'mistake'> {
  return finding;
}

/** Alternatives of the rule `read` whose documents no index finds, by what they ask first: more than have indexes. */
function listUnindexedPaths(collection: Pick<Collection, 'rules'>): string[] {
  if (!collection.rules) return [];
  const { read } = parsedRules(collection.rules);
  if (admitsAnyone(read)) return [];
  const known = new Set([...keyPaths(collection), ID_PATH]);
  const firsts = read.alternatives.flatMap((conditions) => {
    const first = conditions.find((condition) => condition.kind === 'document');
    return first ? [first.path] : [];
  });
  return [...new Set(firsts)].filter((path) => !known.has(path));
}
