import { useRef } from 'preact/hooks';
import type { Collection, CollectionField } from '../../collection.js';
import { PullDown } from '../../parts/pull-down.js';
import { moved, resized, TRASHED, type GridColumn, toggled } from './grid-columns.js';
import { isIndexed, nextSort, sortOf } from './listing.js';

/** Heads of the columns: a click anywhere on one sorts, dragging its name moves it, dragging its edge sizes it. */
export function GridHead({
  columns,
  fields,
  collection,
  sort,
  onColumns,
  onSort,
}: {
  columns: readonly GridColumn[];
  fields: ReadonlyMap<string, CollectionField>;
  collection: Collection;
  sort: string;
  onColumns: (next: GridColumn[]) => void;
  onSort: (sort: string | null) => void;
}) {
  const dragged = useRef<string | null>(null);
  const down = sortOf(sort);
  return (
    <>
      {columns.map(({ name, width }, at) => {
        const field = fields.get(name);
        const isSorted = down.name === name;
        const canSort = name !== TRASHED.name && field?.type !== 'Object' && field?.type !== 'Array';
        return (
          <th
            key={name}
            scope="col"
            class={`${field?.type === 'Number' ? 'number' : ''} ${canSort ? 'sorts' : ''}`}
            {...(canSort && { onClick: () => onSort(nextSort(sort, name)) })}
            {...(isSorted && { 'aria-sort': down.isDown ? ('descending' as const) : ('ascending' as const) })}
            onDragOver={(event) => dragged.current !== null && event.preventDefault()}
            onDrop={(event) => {
              event.preventDefault();
              if (dragged.current !== null) onColumns(moved(columns, dragged.current, at));
            }}
          >
            <span
              class="column"
              draggable
              onDragStart={() => (dragged.current = name)}
              onDragEnd={() => (dragged.current = null)}
            >
              {canSort ? (
                <button
                  class="quiet"
                  aria-label={`Sort by ${name}`}
                  title={isIndexed(collection, name) ? 'Sort: an index serves this order' : 'Sort: not indexed'}
                >
                  {name}
                  <span aria-hidden="true">{isSorted ? (down.isDown ? ' ↓' : ' ↑') : ''}</span>
                </button>
              ) : (
                name
              )}
            </span>
            <Grip name={name} width={width} onWidth={(next) => onColumns(resized(columns, name, next))} />
          </th>
        );
      })}
    </>
  );
}

/** The edge of a column; the column menu has the same for the keyboard. */
function Grip({ width, onWidth }: { name: string; width: number; onWidth: (width: number) => void }) {
  const from = useRef<{ x: number; width: number } | null>(null);
  return (
    <span
      class="grip"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = { x: event.clientX, width: event.currentTarget.parentElement?.offsetWidth ?? width };
      }}
      onPointerMove={(event) => {
        if (from.current) onWidth(from.current.width + event.clientX - from.current.x);
      }}
      onPointerUp={() => (from.current = null)}
      onClick={(event) => event.stopPropagation()}
    />
  );
}

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
          Reset columns
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
