import { call, refusalOf } from '../../api.js';
import { below } from '../../api-paths.js';
import type { CollectionField, DocumentsPath } from '../../collection.js';
import { forgetDraft, keepDraft, readDraft } from '../../drafts.js';
import { utc } from '../../session.js';
import { readNumber, writeScalar } from '../../parts/schema-form/scalar-inputs.js';
import type { ShownFields } from '../document-fields.js';

/** A cell that is being edited, and what is typed into it. */
export interface CellEdit {
  id: string;
  field: string;
  text: string;
}

const EDITABLE = new Set(['String', 'Number', 'Boolean', 'Date', 'Ref']);

/** True for what one line can hold; lists and objects are for the record's form. */
export const isEditable = ({ type, name }: CollectionField): boolean =>
  EDITABLE.has(type) && name !== 'createdAt' && name !== 'updatedAt' && name !== 'deletedAt';

/** A value as it is typed. */
export function textOfCell({ type }: CollectionField, value: unknown): string {
  if (type !== 'Date' || typeof value !== 'string') return writeScalar(value);
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) return value;
  const shift = utc.value ? 0 : date.getTimezoneOffset() * 60_000;
  return new Date(date.getTime() - shift).toISOString().slice(0, 19);
}

/** What a typed text is of a field's type; null clears the field. */
function valueOfCell(field: CollectionField, text: string): { value: unknown; problem: string | null } {
  if (text === '') return { value: null, problem: field.required ? `${field.name} is required` : null };
  if (field.enum) return { value: field.enum.find((choice) => String(choice) === text), problem: null };
  if (field.type === 'Number') return readNumber(text);
  if (field.type === 'Boolean') return { value: text === 'true', problem: null };
  if (field.type !== 'Date') return { value: text, problem: null };
  const date = new Date(utc.value ? `${text}Z` : text);
  if (Number.isNaN(date.getTime())) return { value: undefined, problem: 'This is not a moment.' };
  return { value: date.toISOString(), problem: null };
}

/** Stores one field of a row as it was shown; the problem when it is refused, null when it is stored. */
export async function storeCell(
  documents: DocumentsPath,
  row: ShownFields,
  field: CollectionField,
  text: string,
): Promise<string | null> {
  if (text === textOfCell(field, row[field.name])) return null;
  const { value, problem } = valueOfCell(field, text);
  if (problem !== null) return problem;
  const headers = { 'if-match': `"${String(row.updatedAt)}"` };
  try {
    const path = below(documents, '/{document}', { document: row._id });
    await call('PATCH', path, { body: { [field.name]: value }, headers });
    return null;
  } catch (error) {
    const { code, message, details } = refusalOf(error);
    if (code === 'CHANGED_MEANWHILE') return 'Somebody else changed this document: open it to see both versions.';
    return details.find((each) => each.field === field.name)?.message ?? message;
  }
}

const nameOf = (documents: string): string => `${documents} cell`;
export const keepCell = (documents: string, edit: CellEdit): void => keepDraft(nameOf(documents), edit);
export const forgetCell = (documents: string): void => forgetDraft(nameOf(documents));
export const readCell = (documents: string): CellEdit | null => readDraft<CellEdit>(nameOf(documents));
