import type { Document } from 'bson';
import { type AppError, forbidden } from '../../../errors.js';
import type { EndWriter, Writer } from '../../access/access-rules.js';
import { askNothing, type AskSet } from '../../access/rules/access-sets.js';
import { holdsIn } from '../../access/rules/holds-in.js';
import type { Collection } from '../../collections/collection.js';
import { type PresentedDocument, presentDocument } from '../reply/present-document.js';
import { redactDocument } from '../reply/redact-fields.js';
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
  throw !stored.isDeleted || writer.admits('delete', stored, ask) ? ruleRefused(action, 'before') : notFound();
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

/** A document that was written as its writer sees it. */
export function presentWritten(stored: Record<string, unknown>, writer: Writer): PresentedDocument {
  return presentDocument(redactDocument(stored, writer?.fields?.visibility ?? null));
}

/**
 * 403 FIELD_PROTECTED for a new document with a field that its writer may not set; as the service would set it, by
 * default or stamp, it may be sent by those who see it. What rules ask of sets is requireSettableInside's to say.
 */
export function requireSettable(
  { fields }: Collection,
  writer: EndWriter,
  body: Record<string, unknown>,
  stored: Document,
): void {
  for (const [name, { read, isOpen, hasSets, maySet }] of writer.fields?.guarded ?? []) {
    if (isOpen || !Object.hasOwn(body, name)) continue;
    const isPreset = body[name] === presetOf(fields, name, writer);
    if (isPreset && holdsIn(read, stored)) continue;
    // Whether a preset was sent is not known any more inside of the write.
    if (hasSets ? isPreset && body[name] !== null : !maySet(stored, askNothing)) throw fieldProtected(name);
  }
}

/** requireSettable for the fields whose rules name sets. */
export function requireSettableInside(
  { fields }: Collection,
  writer: EndWriter,
  document: Document,
  ask: AskSet,
): void {
  for (const [name, { isOpen, hasSets, maySet }] of writer.fields?.guarded ?? []) {
    if (isOpen || !hasSets || (document[name] ?? null) === presetOf(fields, name, writer)) continue;
    if (!maySet(document, ask)) throw fieldProtected(name);
  }
}

/** What the service itself sets; null for nothing. */
function presetOf(fields: Collection['fields'], name: string, { userId }: EndWriter): unknown {
  const { default: preset, stamp } = fields.find((field) => field.name === name)!;
  return preset ?? (stamp ? userId : null);
}

/** The 403 for a field that its writer may not set. */
export function fieldProtected(field: string): AppError {
  const message = `You may not set ${field}`;
  return forbidden('FIELD_PROTECTED', message, { details: [{ field, rule: 'write', message }] });
}
