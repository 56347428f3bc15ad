import type { Document } from 'bson';
import { forbidden, type AppError } from '../../../errors.js';
import type { EndWriter, Writer } from '../../access/access-rules.js';
import type { AskSet } from '../../access/rules/access-sets.js';
import { holdsIn } from '../../access/rules/holds-in.js';
import type { Collection } from '../../collections/collection.js';
import { redactDocument } from '../reply/redact-fields.js';
import { presentDocument, type PresentedDocument } from '../reply/present-document.js';

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

const askNothing: AskSet = () => false;

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
