import type { CollectionField } from '../../collection.js';
import { PullDown } from '../../parts/pull-down.js';
import { moved, resized, toggled, type GridColumn } from './grid-columns.js';

const STEP = 40;

/** Which columns are shown, in which order and how wide: for the keyboard too. */
export function ColumnMenu({
  columns,
  fields,
  newField,
  onColumns,
  onReset,
}: {
  columns: readonly GridColumn[];
  fields: readonly CollectionField[];
  onColumns: (next: GridColumn[]) => void;
  onReset: () => void;
  /** Where a field is added; null for operators who may not. */
  newField: string | null;
}) {
  const hidden = fields.filter(({ name }) => !columns.some((column) => column.name === name));
  const toggle = (name: string): void => onColumns(toggled(columns, name, fields));
  return (
    <PullDown label="Columns">
      <ul>
        {columns.map(({ name, width }, at) => (
          <li key={name}>
            <label class="tickable">
              <input type="checkbox" checked onChange={() => toggle(name)} />
              {name}
            </label>
            <span class="end">
              <MenuButton
                label={`Move ${name} left`}
                text="←"
                onPress={() => onColumns(moved(columns, name, at - 1))}
              />
              <MenuButton
                label={`Move ${name} right`}
                text="→"
                onPress={() => onColumns(moved(columns, name, at + 1))}
              />
              <MenuButton
                label={`Make ${name} narrower`}
                text="−"
                onPress={() => onColumns(resized(columns, name, width - STEP))}
              />
              <MenuButton
                label={`Make ${name} wider`}
                text="+"
                onPress={() => onColumns(resized(columns, name, width + STEP))}
              />
            </span>
          </li>
        ))}
        {hidden.map(({ name }) => (
          <li key={name}>
            <label class="tickable">
              <input type="checkbox" checked={false} onChange={() => toggle(name)} />
              {name}
            </label>
          </li>
        ))}
      </ul>
      <p class="row">
        <button class="small" onClick={onReset}>
          As at first
        </button>
        {newField !== null && (
          <a class="end" href={newField}>
            New field…
          </a>
        )}
      </p>
    </PullDown>
  );
}

function MenuButton({ label, text, onPress }: { label: string; text: string; onPress: () => void }) {
  return (
    <button class="small quiet" aria-label={label} title={label} onClick={onPress}>
      {text}
    </button>
  );
}
