import { serialize, type Document } from 'bson';
import { type AppError, forbidden } from '../../../errors.js';
import type { EndWriter, Writer } from '../../access/access-rules.js';
import { filterOf, type CompiledRule } from '../../access/rules/compile-rule.js';
import { pinsOfDocument } from '../../access/rules/pins.js';

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

/** What a document must meet so that the rule holds after an update that changes nothing which a rule could name. */
export function filtersAfter(writer: Writer): Document[] {
  return writer ? filtersOf([writer.compiled('updateTo')]) : [];
}

/** 403 for a write that a rule does not admit: for a document as it is before the write, or as it would be after. */
export function ruleRefused(rule: 'create' | RuledAction, side?: 'before' | 'after'): AppError {
  const when = side === 'after' ? ' as it would be afterwards' : '';
  const message = `The rule "${rule}" of this collection does not admit this document${when}`;
  return forbidden('RULE_REFUSED', message, { details: [{ field: rule, rule, message, ...(side && { side }) }] });
}
