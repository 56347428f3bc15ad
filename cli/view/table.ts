import type { ChalkInstance } from 'chalk';

/** A frame is for screens that have room for it. */
const FRAMED_FROM = 100;
const GAP = 2;
/** Narrower, a shortened cell says nothing. */
const NARROWEST_CELL = 12;
/** Of a delivery is the longest. Names have no digits. */
const ID = /^(?=.*\d)[\w.-]{20,60}$/;
/** An id, and a day or a time. */
const UNBROKEN = new RegExp(`${ID.source}|^\\d{4}-\\d\\d-\\d\\d$|^[\\d:]+Z$`);
const MOMENT = /^(\d{4}-\d\d-\d\d \d\d:\d\d)(?::\d\d)?Z$/;

type Rows = readonly (readonly string[])[];

export interface TableOptions {
  /** The last column is prose, as that of two is: continued below itself instead of being shortened. */
  prose?: boolean;
}

/**
 * Rows below a head for a terminal of a number of columns; null when that is unknown. A wide screen has a frame, with
 * long cells on several lines. On others cells are shortened, moments to the minute, ids never, and the last columns
 * are left out, and named below, when even that does not fit; so is it where a frame would break an id or a day.
 */
export async function drawTable(
  head: readonly string[],
  rows: Rows,
  columns: number | null,
  paint: ChalkInstance,
  { prose = head.length === 2 }: TableOptions = {},
): Promise<string> {
  if (columns === null) return drawFramed(head, rows, paint);
  if (columns < FRAMED_FROM) return drawPlain(head, rows, columns, paint, prose);
  const room = columns - 1 - 3 * head.length;
  const unbroken = leastFramed(head, rows, () => true);
  const least = sumOf(unbroken) <= room ? unbroken : leastFramed(head, rows, (word) => UNBROKEN.test(word));
  if (sumOf(least) > room) return drawPlain(head, rows, columns, paint, prose);
  const widths = shrinkToFit([head, ...rows], room, least);
  const wrapped = rows.map((row) => row.map((cell, column) => wrapText(cell, widths[column]!)));
  return drawFramed(head, wrapped, paint);
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

async function drawFramed(head: readonly string[], rows: Rows, paint: ChalkInstance): Promise<string> {
  const { default: Table } = await import('cli-table3');
  // Painted here: the package would judge by the process's own environment whether colour is wanted.
  const table = new Table({ head: head.map((cell) => paint.cyan(cell)), style: { head: [], border: [] } });
  table.push(...rows.map((row) => [...row]));
  const flat = rows.every((row) => row.every((cell) => !cell.includes('\n')));
  // A line below the head; between rows only where a row takes several lines.
  const lines = table.toString().split('\n');
  return lines.filter((line, at) => !flat || at <= 2 || !line.startsWith('├')).join('\n');
}

function drawPlain(head: readonly string[], rows: Rows, columns: number, paint: ChalkInstance, prose: boolean): string {
  const whole = rows.map((row) => row.map((cell) => cell.replace(/\s*\n\s*/g, ' ')));
  const fits = sumOf(measureColumns([head, ...whole])) + GAP * (head.length - 1) <= columns;
  const flat = fits ? whole : whole.map((row) => row.map((cell) => cell.replace(MOMENT, '$1Z')));
  const least = leastPlain(head, flat);
  let shown = head.length;
  const total = (count: number): number => least.slice(0, count).reduce((sum, width) => sum + width + GAP, -GAP);
  while (shown > 1 && total(shown) > columns) shown -= 1;
  const cut = [head, ...flat].map((row) => row.slice(0, shown));
  const widths = shrinkToFit(cut, columns - GAP * (shown - 1), least);
  const isProse = (at: number): boolean => prose && at === head.length - 1;
  const line = (cells: readonly string[], draw = (text: string): string => text): string =>
    cells
      .map((cell, at) => draw(cell) + ' '.repeat(widths[at]! - cell.length))
      .join(' '.repeat(GAP))
      .trimEnd();
  const lines = cut.slice(1).flatMap((row) => {
    const cells = row.map((cell, at) =>
      isProse(at) ? wrapText(cell, widths[at]!).split('\n') : [shorten(cell, widths[at]!)],
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

const NARROWEST_FRAMED = 8;

/** Widths at which none of the words that are to stay whole is broken. */
function leastFramed(head: readonly string[], rows: Rows, staysWhole: (word: string) => boolean): number[] {
  const widest = (cell: string): number =>
    Math.max(0, ...cell.split(/\s+/).map((word) => (staysWhole(word) ? word.length : 0)));
  return head.map((name, column) =>
    rows.reduce((most, row) => Math.max(most, widest(row[column]!)), Math.max(NARROWEST_FRAMED, name.length)),
  );
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
