import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { below } from '../../api-paths.js';
import { call, refusalOf } from '../../api.js';
import type { CollectionField, DocumentsPath } from '../../collection.js';
import { forgetDraft, keepDraft, readDraft } from '../../drafts.js';
import { readNumber, writeScalar } from '../../parts/schema-form/scalar-inputs.js';
import { linkHere } from '../../routes.js';
import { utc } from '../../session.js';
import type { ShownFields } from '../record/use-record.js';
import { CellValue } from './cell-value.js';
import type { GridColumn } from './grid-columns.js';

interface RowProps {
  row: ShownFields;
  columns: readonly GridColumn[];
  fields: ReadonlyMap<string, CollectionField>;
  titles: ReadonlyMap<string, string>;
  /** What is typed into a cell of the row. */
  edit: CellEdit | null;
  isSelected?: boolean;
  /** Left out where nothing can be chosen. */
  onToggle?: (isRange: boolean) => void;
  /** `text` takes the place of the cell's. */
  onEdit: (field: CollectionField, text?: string) => void;
  onType: (edit: CellEdit | null) => void;
  onStore: (field: CollectionField, text: string, isBack: boolean | null) => Promise<string | null>;
  onFocus: (name: string) => void;
}

export function GridRow(props: RowProps) {
  const { row, columns, fields, isSelected = false, onToggle, onFocus } = props;
  return (
    <tr class={isSelected ? 'selected' : ''}>
      {onToggle && (
        <td class="tick">
          <input
            type="checkbox"
            aria-label={`Row ${row._id}`}
            checked={isSelected}
            onClick={(event) => onToggle(event.shiftKey)}
          />
        </td>
      )}
      <td>
        <a
          class="opens id"
          href={linkHere({ open: row._id })}
          onKeyDown={(event) => event.key === 'ArrowRight' && onFocus(columns[0]!.name)}
        >
          {row._id.slice(0, 4)}…{row._id.slice(-4)}
        </a>
      </td>
      {columns.map(({ name }) => (
        <Cell key={name} {...props} field={fields.get(name)!} />
      ))}
    </tr>
  );
}

function Cell({ row, field, edit, titles, onEdit, onType, onStore, onFocus }: RowProps & { field: CollectionField }) {
  const { name } = field;
  const isEdited = edit?.field === name;
  return (
    <td
      class={isEdited ? 'edited' : field.type === 'Number' ? 'number' : ''}
      tabIndex={-1}
      data-cell={`${row._id} ${name}`}
      dir="auto"
      onDblClick={() => isEdited || onEdit(field)}
      onKeyDown={(event) => {
        if (event.target !== event.currentTarget) return;
        if (event.key === 'Enter') {
          onEdit(field);
        } else if (isText(event, field)) {
          onEdit(field, event.key);
          // It is no step to another line.
          event.stopPropagation();
        } else if (!step(event)) {
          return;
        }
        event.preventDefault();
      }}
    >
      {isEdited ? (
        <CellInput
          field={field}
          text={edit.text}
          onText={(text) => onType({ ...edit, text })}
          onStore={(text, isBack) => onStore(field, text, isBack)}
          onCancel={() => {
            onType(null);
            onFocus(name);
          }}
        />
      ) : (
        <CellValue field={field} value={row[name]} titles={titles} />
      )}
    </td>
  );
}

/** True for a key that is the first of a text in the cell. */
function isText({ key, ctrlKey, metaKey, altKey }: KeyboardEvent, { type, enum: choices }: CollectionField): boolean {
  return key.length === 1 && key !== ' ' && !ctrlKey && !metaKey && !altKey && !choices && TYPED.has(type);
}

const TYPED = new Set(['String', 'Number', 'Ref']);

/** Goes from cell to cell by the arrows; false for any other key. */
function step(event: KeyboardEvent): boolean {
  const cell = event.currentTarget as HTMLTableCellElement;
  const line = cell.parentElement as HTMLTableRowElement;
  const lines = (line.parentElement as HTMLTableSectionElement).rows;
  const at = line.sectionRowIndex;
  const target = {
    ArrowLeft: line.cells[cell.cellIndex - 1],
    ArrowRight: line.cells[cell.cellIndex + 1],
    ArrowUp: lines[at - 1]?.cells[cell.cellIndex],
    ArrowDown: lines[at + 1]?.cells[cell.cellIndex],
  }[event.key];
  if (!target) return false;
  (target.querySelector<HTMLElement>('.opens') ?? target).focus();
  return true;
}

/** One cell while it is edited: Enter stores, Esc does not, Tab stores and goes to the next one. */
function CellInput({
  field,
  text,
  onText,
  onStore,
  onCancel,
}: {
  field: CollectionField;
  text: string;
  onText: (text: string) => void;
  /** The problem when it was not stored. */
  onStore: (text: string, isBack: boolean | null) => Promise<string | null>;
  onCancel: () => void;
}) {
  const input = useRef<HTMLInputElement & HTMLSelectElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const busy = useRef(false);
  // Before the next key: what is typed quickly is all its own.
  useLayoutEffect(() => input.current?.focus(), []);
  const store = async (isBack: boolean | null): Promise<void> => {
    if (busy.current) return;
    busy.current = true;
    const found = await onStore(input.current?.value ?? text, isBack);
    busy.current = false;
    setProblem(found);
  };
  const common = {
    ref: input,
    'aria-label': field.name,
    value: text,
    onInput: (event: { currentTarget: { value: string } }) => onText(event.currentTarget.value),
    onBlur: () => void store(null),
    onKeyDown: (event: KeyboardEvent) => {
      event.stopPropagation();
      const act = {
        Enter: () => void store(null),
        Tab: () => void store(event.shiftKey),
        Escape: () => {
          // Losing the focus on the way stores nothing.
          busy.current = true;
          onCancel();
        },
      }[event.key];
      if (!act) return;
      act();
      event.preventDefault();
    },
  };
  const choices = field.enum?.map(String) ?? (field.type === 'Boolean' ? ['true', 'false'] : null);
  return (
    <>
      {choices ? (
        <select {...common}>
          {(!field.required || text === '') && <option value="">not set</option>}
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      ) : field.type === 'Date' ? (
        <input {...common} type="datetime-local" step={1} />
      ) : (
        <input {...common} autocomplete="off" dir="auto" {...(field.type === 'Number' && { inputMode: 'decimal' })} />
      )}
      {problem !== null && (
        <span class="field-error" role="alert">
          {problem}
        </span>
      )}
    </>
  );
}

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
  if (Number.isNaN(date.getTime())) return { value: undefined, problem: 'This is not a date and time.' };
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
    if (code === 'CHANGED_MEANWHILE') return 'Someone else changed this document. Open it to see both versions.';
    return details.find((each) => each.field === field.name)?.message ?? message;
  }
}

const nameOf = (documents: string): string => `${documents} cell`;
export const keepCell = (documents: string, edit: CellEdit): void => keepDraft(nameOf(documents), edit);
export const forgetCell = (documents: string): void => forgetDraft(nameOf(documents));
export const readCell = (documents: string): CellEdit | null => readDraft<CellEdit>(nameOf(documents));
