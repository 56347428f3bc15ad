import type { ChalkInstance } from 'chalk';

/** On screens with so much room no cell is shortened. */
const WIDE_FROM = 100;
const GAP = 2;
/** Narrower, a shortened cell says nothing. */
const NARROWEST_CELL = 12;
/** Of a delivery is the longest. Names have no digits. */
const ID = /^(?=.*\d)[\w.-]{20,60}$/;
const MOMENT = /^(\d{4}-\d\d-\d\d \d\d:\d\d)(?::\d\d)?Z$/;

type Rows = readonly (readonly string[])[];

export interface TableOptions {
  /** The last column is prose, as that of two is: continued below itself instead of being shortened. */
  prose?: boolean;
}

/** Columns of plain text, as wide as they are. */
export function presentColumns(rows: Rows): string {
  const widths = measureColumns(rows);
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/**
 * Rows below a head for a terminal of a number of columns; null when that is unknown. Where they do not fit, long cells
 * are continued below themselves on a wide screen and shortened on others, moments to the minute, ids never. The last
 * columns are left out, and named below, when even that does not fit.
 */
export function drawTable(
  head: readonly string[],
  rows: Rows,
  columns: number | null,
  paint: ChalkInstance,
  options: TableOptions = {},
): string {
  const { prose = head.length === 2 } = options;
  const available = columns ?? Infinity;
  const whole = rows.map((row) => row.map((cell) => cell.replace(/\s*\n\s*/g, ' ')));
  const isWide = available >= WIDE_FROM;
  const fits = sumOf(measureColumns([head, ...whole])) + GAP * (head.length - 1) <= available;
  const flat = fits || isWide ? whole : whole.map((row) => row.map((cell) => cell.replace(MOMENT, '$1Z')));
  const least = leastPlain(head, flat);
  let shown = head.length;
  const total = (count: number): number => least.slice(0, count).reduce((sum, width) => sum + width + GAP, -GAP);
  while (shown > 1 && total(shown) > available) shown -= 1;
  const cut = [head, ...flat].map((row) => row.slice(0, shown));
  const widths = shrinkToFit(cut, available - GAP * (shown - 1), least);
  const wraps = (at: number): boolean => isWide || (prose && at === head.length - 1);
  const line = (cells: readonly string[], draw = (text: string): string => text): string =>
    cells
      .map((cell, at) => draw(cell) + ' '.repeat(widths[at]! - cell.length))
      .join(' '.repeat(GAP))
      .trimEnd();
  const lines = cut.slice(1).flatMap((row) => {
    const cells = row.map((cell, at) =>
      wraps(at) ? wrapText(cell, widths[at]!).split('\n') : [shorten(cell, widths[at]!)],
    );
    const height = Math.max(...cells.map((parts) => parts.length));
    return Array.from({ length: height }, (_, at) => line(cells.map((parts) => parts[at] ?? '')));
  });
  const names = head.slice(0, shown).map((name, at) => shorten(name.toUpperCase(), widths[at]!));
  const left = head.slice(shown);
  return [
    line(names, (text) => paint.cyan(text)),
    ...lines,
    ...(left.length > 0 ? [paint.dim(`Not shown: ${left.join(', ')}`)] : []),
  ].join('\n');
}

function leastPlain(head: readonly string[], rows: Rows): number[] {
  return measureColumns([head, ...rows]).map((width, at) => {
    // Cut off, neither says anything.
    const uncut = rows.map((row) => (ID.test(row[at]!) || MOMENT.test(row[at]!) ? row[at]!.length : 0));
    return Math.min(width, Math.max(NARROWEST_CELL, head[at]!.length, ...uncut));
  });
}

/** Widths of the columns, taken from the widest ones until all fit or none is wider than its least. */
function shrinkToFit(rows: Rows, available: number, least: readonly number[]): number[] {
  const widths = measureColumns(rows);
  let excess = sumOf(widths) - available;
  while (excess > 0) {
    const [spare, column] = widths.reduce<[number, number]>(
      (most, width, at) => (width > least[at]! && width > most[0] ? [width, at] : most),
      [0, -1],
    );
    if (spare === 0) break;
    widths[column]! -= 1;
    excess -= 1;
  }
  return widths;
}

const sumOf = (widths: readonly number[]): number => widths.reduce((sum, width) => sum + width, 0);

/** In lines of at most `width` characters, broken between words where there are any. */
export function wrapText(text: string, width: number): string {
  const lines: string[] = [];
  for (const paragraph of text.split('\n')) {
    let rest = paragraph;
    while (rest.length > width) {
      const space = rest.lastIndexOf(' ', width);
      const end = space > 0 ? space : width;
      lines.push(rest.slice(0, end));
      rest = rest.slice(space > 0 ? end + 1 : end);
    }
    lines.push(rest);
  }
  return lines.join('\n');
}

function shorten(cell: string, width: number): string {
  return cell.length <= width ? cell : `${cell.slice(0, width - 1).trimEnd()}…`;
}

function measureColumns(rows: Rows): number[] {
  const widthOf = (cell = ''): number => cell.split('\n').reduce((most, line) => Math.max(most, line.length), 0);
  return rows[0]!.map((_, column) => rows.reduce((most, row) => Math.max(most, widthOf(row[column])), 0));
}
