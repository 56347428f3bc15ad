import type { CollectionField } from '../../collection.js';
import { linkHere } from '../../routes.js';
import type { ShownFields } from '../document-fields.js';
import { CellInput } from './cell-input.js';
import { CellValue } from './cell-value.js';
import type { GridColumn } from './grid-columns.js';
import type { CellEdit } from './inline-edit.js';

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
