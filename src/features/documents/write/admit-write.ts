import { serialize, type Document } from 'bson';
import { type AppError, forbidden, invalid } from '../../../errors.js';
import type { EndWriter, Writer } from '../../access/access-rules.js';
import { filterOf, filterOfOne, type CompiledRule, type OpenCondition } from '../../access/rules/compile-rule.js';
import { pinsOfDocument } from '../../access/rules/pins.js';
import type { ChangedFields } from './document-change.js';

/** The writes that rules decide about by what is stored. */
export type RuledAction = 'update' | 'delete';

/**
 * What a document must meet before a write, as parts of the write's own filter: to be readable, and what the rule of
 * the write asks (rules.md 6). 401 where somebody unknown may do nothing of the kind.
 */
export function filtersBefore(writer: Writer, action: RuledAction): Document[] {
  return writer ? filtersOf([...readableFor(writer), writer.compiled(action)]) : [];
}

/** Filters of rules, each rule once; none for what leaves nothing out. */
function filtersOf(rules: readonly CompiledRule[]): Document[] {
  return [...new Set(rules)].map(filterOf).filter((filter) => filter !== null);
}

/** Of what the writer may not read a write says nothing. Row-level security answers 403 where the document is there. */
function readableFor(writer: EndWriter): CompiledRule[] {
  return writer.ownerField === null ? [writer.compiled('read')] : [];
}

/** What must hold of a document for the writer to know that it is there; null for everything. */
export function readableFilter(writer: Writer): Document | null {
  return writer && writer.ownerField === null ? filterOf(writer.compiled('read')) : null;
}

/** 403 RULE_REFUSED, or 401, unless the rule `create` admits the document as it would be stored. */
export async function requireCreatable(writer: Writer, document: Document): Promise<void> {
  // Under row-level security its owner has just been set.
  if (!writer || writer.ownerField !== null) return;
  const { settledBy } = writer;
  const settled = settledBy ? await writer.settle({ create: pinsOfDocument(document, settledBy) }) : writer;
  requireAdmitted(settled, document);
}

function requireAdmitted(writer: EndWriter, document: Document): void {
  const rule = writer.compiled('create');
  const filter = filterOf(rule);
  if (filter === null) return;
  const named = rule.flatMap((conditions) => conditions.map(({ path }) => path.split('.')[0]!));
  const asked = Object.fromEntries(['_id', ...named].map((name) => [name, document[name] as unknown]));
  if (!matchesFilter(writer, filter, asked)) throw ruleRefused('create');
}

/** True for a document that the writer has in hand and a filter admits. */
export function matchesFilter({ openMatcher }: EndWriter, filter: Document, document: Document): boolean {
  return openMatcher(filter).matches(Buffer.from(serialize(document)));
}

/**
 * What the stored document must meet so that the rule holds after an update too: conditions on fields that the change
 * sets are decided by it, those on results of operators become conditions on what is stored, the others are left for
 * the write's filter. Null when the rule cannot hold afterwards. 400 for a change below a field that the rule names.
 */
export function filtersAfter(writer: Writer, change: ChangedFields): Document[] | null {
  if (!writer) return [];
  const rule = writer.compiled('updateTo');
  const changed = changedPaths(change);
  const paths = new Set(rule.flatMap((conditions) => conditions.map(({ path }) => path)));
  const touched = new Map<string, string>();
  for (const path of paths) {
    for (const key of changed) if (isDecidedBy(key, path)) touched.set(path, key);
  }
  if (touched.size === 0) return filtersOf([rule]);
  const left: Document[][] = [];
  for (const conditions of rule) {
    const open: Document[] = [];
    const isOpen = conditions.every((condition) => {
      const key = touched.get(condition.path);
      const decided = key === undefined ? filterOfOne(condition) : decideAfter(writer, condition, key, change);
      if (typeof decided === 'object') open.push(decided);
      return decided !== false;
    });
    if (isOpen) left.push(open);
  }
  if (left.length === 0) return null;
  if (left.some((open) => open.length === 0)) return [];
  return left.length === 1 ? left[0]! : [{ $or: left.map((open) => ({ $and: open })) }];
}

/** Every path that an update changes, by operators too. */
export function changedPaths({ set, unset, results }: ChangedFields): string[] {
  return [...Object.keys(set), ...unset, ...(results?.keys() ?? [])];
}

/** A condition of a rule after a change of `key`: decided, or what has to be stored before. */
function decideAfter(
  writer: EndWriter,
  condition: OpenCondition,
  key: string,
  change: ChangedFields,
): boolean | Document {
  const resultIn = change.results?.get(key);
  if (resultIn === undefined) return matchesFilter(writer, filterOfOne(condition), documentWith(key, change));
  if (resultIn === null || key !== condition.path) throw changedAlone(key, condition.path);
  return resultIn(condition.values);
}

/** True if a change of `key` gives the path another value; 400 if it changes a part of that value alone. */
export function isDecidedBy(key: string, path: string): boolean {
  if (key === path || path.startsWith(`${key}.`)) return true;
  // A position in a list on the way is no name in the path of a rule.
  const plain = key
    .split('.')
    .filter((part) => !/^\d+$/.test(part))
    .join('.');
  const isPart = plain === path || plain.startsWith(`${path}.`) || (plain !== key && path.startsWith(`${plain}.`));
  if (!isPart) return false;
  throw changedAlone(key, path);
}

/** The 400 for a change that leaves open what a path holds which a rule names. */
export function changedAlone(key: string, path: string): AppError {
  const message = `${key} cannot be changed alone, as a rule of the collection names ${path}: send all of ${path.split('.')[0]!}`;
  return invalid('VALIDATION_FAILED', `Validation failed: ${message}`, {
    details: [{ field: key, rule: 'access', message }],
  });
}

/** A document that has nothing but what a change sets at one key. */
export function documentWith(key: string, { set }: ChangedFields): Document {
  if (!Object.hasOwn(set, key)) return {};
  return key.split('.').reduceRight<unknown>((value, part) => ({ [part]: value }), set[key]) as Document;
}

/** 403 for a write that a rule does not admit: for a document as it is before the write, or as it would be after. */
export function ruleRefused(rule: 'create' | RuledAction, side?: 'before' | 'after'): AppError {
  const when = side === 'after' ? ' as it would be afterwards' : '';
  const message = `The rule "${rule}" of this collection does not admit this document${when}`;
  return forbidden('RULE_REFUSED', message, { details: [{ field: rule, rule, message, ...(side && { side }) }] });
}
