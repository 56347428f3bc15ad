import { type AppError, forbidden } from '../../../errors.js';
import type { EndWriter } from '../../access/access-rules.js';
import type { AskSet } from '../../access/rules/access-sets.js';
import type { StoredDocument } from '../store/document.js';
import { documentNotFound } from './write-target.js';

/** The writes that rules decide about by what is stored. */
export type RuledAction = 'update' | 'delete';

/**
 * 404 for what the writer may not read, 403 for what a write may not be done to; of the trash only those know who may
 * fill it.
 */
export function requireAdmitted(
  writer: EndWriter,
  action: RuledAction,
  stored: StoredDocument,
  ask: AskSet,
  notFound: () => AppError = documentNotFound,
): void {
  if (writer.ownerField !== null) {
    if (stored[writer.ownerField] === writer.userId) return;
    throw forbidden('OWNER_MISMATCH', 'The document belongs to another user');
  }
  if (!writer.admits('read', stored, ask)) throw notFound();
  if (writer.admits(action, stored, ask)) return;
  throw stored.isDeleted === false || writer.admits('delete', stored, ask) ? ruleRefused(action, 'before') : notFound();
}

/** 403 where the rule would not admit the document that an update leaves. */
export function requireAdmittedAfter(writer: EndWriter, next: StoredDocument, ask: AskSet): void {
  if (writer.ownerField === null && !writer.admits('updateTo', next, ask)) throw ruleRefused('update', 'after');
}

/** 403 for a write that a rule does not admit: for a document as it is before the write, or as it would be after. */
export function ruleRefused(rule: 'create' | RuledAction, side?: 'before' | 'after'): AppError {
  const when = side === 'after' ? ' as it would be afterwards' : '';
  const message = `The rule "${rule}" of this collection does not admit this document${when}`;
  return forbidden('RULE_REFUSED', message, { details: [{ field: rule, rule, message, ...(side && { side }) }] });
}
