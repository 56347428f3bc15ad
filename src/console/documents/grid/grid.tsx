import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Collection, CollectionField, DocumentsPath } from '../../collection.js';
import { Skeleton, useRowSteps } from '../../parts/table.js';
import type { ShownFields } from '../record/use-record.js';
import type { GridColumn } from './grid-columns.js';
import { GridHead } from './grid-head.js';
import {
  GridRow,
  forgetCell,
  isEditable,
  keepCell,
  readCell,
  storeCell,
  textOfCell,
  type CellEdit,
} from './grid-row.js';

const ID_WIDTH = 116;
const TICK_WIDTH = 40;

interface GridProps {
  collection: Collection;
  documents: DocumentsPath;
  columns: readonly GridColumn[];
  fields: ReadonlyMap<string, CollectionField>;
  /** null until the first answer. */
  rows: readonly ShownFields[] | null;
  /** What is listed, as a text: of another one the first line is shown, wherever the last one was scrolled to. */
  listed: string;
  /** Shown where no row is. */
  empty: ComponentChildren;
  titles: ReadonlyMap<string, string>;
  loading: boolean;
  sort: string;
  selected: ReadonlySet<string>;
  isFixed: boolean;
  onColumns: (next: GridColumn[]) => void;
  onSort: (sort: string | null) => void;
  onSelect: (ids: Set<string>) => void;
  onChange: () => void;
}

/**
 * Documents as lines. `j` and `k` go from line to line, arrows from cell to cell; Enter opens a line's record by its id
 * and edits a cell, as a double click does; what is typed there takes the place of its text. A click with Shift chooses
 * all lines from the one that was chosen last.
 */
export function Grid(props: GridProps) {
  const { collection, documents, columns, fields, rows: loaded, titles, loading, selected, isFixed } = props;
  const body = useRef<HTMLTableSectionElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => frame.current?.scrollTo({ top: 0 }), [props.listed]);
  const rows = loaded ?? [];
  // What was typed into a cell before the page was loaded again is typed there still.
  const [edit, setEdit] = useState<CellEdit | null>(() => (isFixed ? null : readCell(documents)));
  const begin = (next: CellEdit | null): void => {
    if (next) {
      keepCell(documents, next);
    } else {
      forgetCell(documents);
    }
    setEdit(next);
  };
  useRowSteps(body);
  const focusCell = (id: string, name: string): void => {
    const selector = `[data-cell="${CSS.escape(`${id} ${name}`)}"]`;
    body.current?.querySelector<HTMLElement>(selector)?.focus();
  };
  const editable = columns.map(({ name }) => fields.get(name)!).filter(isEditable);
  const open = (row: ShownFields, field: CollectionField, text = textOfCell(field, row[field.name])): void => {
    if (!isFixed && row.isDeleted !== true && isEditable(field)) begin({ id: row._id, field: field.name, text });
  };
  const store = async (row: ShownFields, field: CollectionField, text: string, isBack: boolean | null) => {
    const problem = await storeCell(documents, row, field, text);
    if (problem !== null) return problem;
    const at = editable.indexOf(field) + (isBack === true ? -1 : 1);
    const next = isBack === null ? undefined : editable[at];
    if (text !== textOfCell(field, row[field.name])) props.onChange();
    begin(next ? { id: row._id, field: next.name, text: textOfCell(next, row[next.name]) } : null);
    if (!next) focusCell(row._id, field.name);
    return null;
  };
  const toggle = useToggle(rows, selected, props.onSelect);
  return (
    <div
      ref={frame}
      class="scroll grid"
      role="region"
      aria-label={`Documents of ${collection.name}`}
      tabIndex={0}
      aria-busy={loading}
    >
      <table style={{ minWidth: `${columns.reduce((sum, { width }) => sum + width, ID_WIDTH + TICK_WIDTH)}px` }}>
        <Widths columns={columns} isFixed={isFixed} />
        <thead>
          <tr>
            {!isFixed && <TickAll rows={rows} selected={selected} onSelect={props.onSelect} />}
            <th scope="col">_id</th>
            <GridHead {...props} />
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row) => (
            <GridRow
              key={row._id}
              row={row}
              columns={columns}
              fields={fields}
              titles={titles}
              edit={edit?.id === row._id ? edit : null}
              {...(!isFixed && { isSelected: selected.has(row._id), onToggle: (isRange) => toggle(row._id, isRange) })}
              onEdit={(field, text) => open(row, field, text)}
              onType={begin}
              onStore={(field, text, isBack) => store(row, field, text, isBack)}
              onFocus={(name) => focusCell(row._id, name)}
            />
          ))}
        </tbody>
      </table>
      {loaded?.length === 0 && props.empty}
      {loaded === null && loading && <Skeleton />}
    </div>
  );
}

/** Chooses a line or leaves it out; as a range with all lines between it and the one that was clicked before. */
function useToggle(
  rows: readonly ShownFields[],
  selected: ReadonlySet<string>,
  onSelect: (ids: Set<string>) => void,
): (id: string, isRange: boolean) => void {
  const last = useRef('');
  return (id, isRange) => {
    const [from, to] = [last.current, id].map((each) => rows.findIndex(({ _id }) => _id === each)) as [number, number];
    const range = isRange && from !== -1 ? rows.slice(Math.min(from, to), Math.max(from, to) + 1) : [rows[to]!];
    const next = new Set(selected);
    for (const { _id } of range) {
      if (selected.has(id)) next.delete(_id);
      else next.add(_id);
    }
    last.current = id;
    onSelect(next);
  };
}

function Widths({ columns, isFixed }: { columns: readonly GridColumn[]; isFixed: boolean }) {
  return (
    <colgroup>
      {!isFixed && <col style={{ width: `${TICK_WIDTH}px` }} />}
      <col style={{ width: `${ID_WIDTH}px` }} />
      {columns.map(({ name, width }) => (
        <col key={name} style={{ width: `${width}px` }} />
      ))}
    </colgroup>
  );
}

function TickAll({
  rows,
  selected,
  onSelect,
}: { rows: readonly ShownFields[] } & Pick<GridProps, 'selected' | 'onSelect'>) {
  return (
    <th class="tick">
      <input
        type="checkbox"
        aria-label="All rows"
        checked={rows.length > 0 && rows.every(({ _id }) => selected.has(_id))}
        onChange={(event) => onSelect(new Set(event.currentTarget.checked ? rows.map(({ _id }) => _id) : []))}
      />
    </th>
  );
}
