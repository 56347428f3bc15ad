import type { Document } from 'bson';
import { forbidden, type AppError } from '../../../errors.js';
import type { EndWriter, Writer } from '../../access/access-rules.js';
import { filterOf } from '../../access/rules/compile-rule.js';
import { holdsIn } from '../../access/rules/holds-in.js';
import type { Collection } from '../../collections/collection.js';
import { concealInDocument } from '../reply/conceal-fields.js';
import { presentDocument, type PresentedDocument } from '../reply/present-document.js';

/** A document that was written as its writer sees it. */
export function presentWritten(stored: Record<string, unknown>, writer: Writer): PresentedDocument {
  return presentDocument(concealInDocument(stored, writer?.fields?.sight ?? null));
}

/**
 * 403 FIELD_PROTECTED for a new document with a field that its writer may not set; as the service would set it, by
 * default or stamp, it may be sent by those who see it.
 */
export function requireSettable(
  { fields }: Collection,
  writer: EndWriter,
  body: Record<string, unknown>,
  stored: Document,
): void {
  for (const [name, { read, write }] of writer.fields?.guarded ?? []) {
    if (filterOf(write) === null || !Object.hasOwn(body, name)) continue;
    const { default: preset, stamp } = fields.find((field) => field.name === name)!;
    const own = preset ?? (stamp ? writer.userId : null);
    if (body[name] === own && holdsIn(read, stored)) continue;
    if (!holdsIn(write, stored)) throw fieldProtected(name);
  }
}

/** The 403 for a field that its writer may not set. */
export function fieldProtected(field: string): AppError {
  const message = `You may not set ${field}`;
  return forbidden('FIELD_PROTECTED', message, { details: [{ field, rule: 'write', message }] });
}
