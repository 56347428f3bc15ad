import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { number } from '../format.js';
import type { Loaded } from '../load.js';
import { linkHere } from '../routes.js';
import { ErrorNote } from './basics.js';

export interface Column<Row> {
  name: string;
  show: (row: Row) => ComponentChildren;
  /** A number stands to the right, the head of a row names it, a wrapped text takes several lines. */
  kind?: 'number' | 'head' | 'wrapped';
}

interface TableProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[] | null;
  keyOf: (row: Row) => string;
  /** Shown where no row is; a text as a line of its own. */
  empty: ComponentChildren;
  loading: boolean;
}

/** Lines as they stand, and what they were drawn of. */
interface Drawn<Row> {
  rows: readonly Row[] | null;
  wide: number;
  lines: ComponentChildren;
}

/** A table of rows that are loaded, under what the server refused. */
export function List<Row>({
  of: { data, error, loading, reload },
  ...table
}: Omit<TableProps<Row>, 'rows' | 'loading'> & { of: Loaded<{ items: Row[] }> }) {
  return (
    <>
      <ErrorNote error={error} onRetry={reload} />
      <Table {...table} rows={data?.items ?? null} loading={loading} />
    </>
  );
}

/** From page to page of a list that knows how many there are. */
export function Pages({
  of,
  names: [one, many],
}: {
  of: { page: number; limit: number; total: number } | null;
  names: readonly [one: string, many: string];
}) {
  if (!of) return null;
  const { page, limit, total } = of;
  return (
    <p class="pages">
      {page > 1 && <a href={linkHere({ page: page === 2 ? null : String(page - 1) })}>← Newer</a>}
      {page * limit < total && <a href={linkHere({ page: String(page + 1) })}>Older →</a>}
      <span class="muted">
        {number(total)} {total === 1 ? one : many}
      </span>
    </p>
  );
}

/**
 * Rows of a list. The table scrolls inside its frame, the page never sideways. `j` and `k` go from row to row, Enter
 * opens one: by its first link or button.
 */
export function Table<Row>({ label, columns, rows, keyOf, empty, loading }: TableProps<Row>) {
  const body = useRef<HTMLTableSectionElement>(null);
  const drawn = useRef<Drawn<Row> | null>(null);
  useRowSteps(body);
  // While others are under way the same rows are not drawn again: they only wait.
  const wide = columns.length;
  if (!loading || drawn.current?.rows !== rows || drawn.current.wide !== wide) {
    const lines = rows?.map((row) => (
      <tr key={keyOf(row)}>
        {columns.map(({ name, show, kind = '' }) =>
          kind === 'head' ? (
            <th key={name} scope="row">
              {show(row)}
            </th>
          ) : (
            <td key={name} class={kind}>
              {show(row)}
            </td>
          ),
        )}
      </tr>
    ));
    drawn.current = { rows, wide, lines };
  }
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0} aria-busy={loading}>
      <table>
        <thead>
          <tr>
            {columns.map(({ name, kind }) => (
              <th key={name} scope="col" class={kind === 'number' ? kind : ''}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>{drawn.current.lines}</tbody>
      </table>
      {rows?.length === 0 && (typeof empty === 'string' ? <p class="empty">{empty}</p> : empty)}
      {rows === null && loading && <Skeleton />}
    </div>
  );
}

/** `j` and `k`: to the first link or button of the line below or above. */
export function useRowSteps(body: RefObject<HTMLTableSectionElement | null>): void {
  useEffect(() => {
    const step = (event: KeyboardEvent): void => {
      if ((event.key !== 'j' && event.key !== 'k') || isTyping(event) || document.querySelector('dialog[open]')) return;
      const openers = [...(body.current?.querySelectorAll<HTMLElement>('tr .opens') ?? [])];
      const line = document.activeElement?.closest('tr')?.querySelector<HTMLElement>('.opens');
      const at = line ? openers.indexOf(line) : -1;
      openers[event.key === 'j' ? Math.min(at + 1, openers.length - 1) : Math.max(at - 1, 0)]?.focus();
    };
    addEventListener('keydown', step);
    return () => removeEventListener('keydown', step);
  }, [body]);
}

/** Lines where rows will be, so that nothing jumps when they come. */
export function Skeleton() {
  return (
    <div class="skeletons">
      <span class="hidden">Loading…</span>
      {[50, 70, 40, 60, 55].map((width) => (
        <span key={width} class={`skeleton w${width}`} />
      ))}
    </div>
  );
}

export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  const target = event.composedPath()[0] as HTMLElement | undefined;
  return target?.isContentEditable === true || /^(INPUT|TEXTAREA|SELECT)$/.test(target?.tagName ?? '');
}
