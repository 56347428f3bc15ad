import { TextDecoder } from 'node:util';
import type { CsvError } from 'csv-parse';
import { findDelimiter, fitRow, readHead, type Head } from '../../src/exchange/csv-row.js';
import { findNonUtf8 } from '../../src/text.js';
import { MAX_ENTRY_BYTES, type Entry, NOT_UTF8 } from './entry.js';

const LINE_END = /\r\n|\n|\r/;
const LINE_ENDS = ['\r\n', '\n', '\r'];

/** More characters than the parser looks ahead. */
const LOOK_AHEAD = 'x'.repeat(16);

/** A row with the line on which it begins. A cell is null where nothing is written, and empty where `""` is. */
interface Row {
  line: number;
  cells: (string | null)[];
}

/** Makes a reader of rows as documents for a head row. */
export type OpenRows = (head: Head) => (cells: readonly (string | null)[]) => unknown;

/**
 * Rows below a head row, as RFC 4180 has them: the delimiter may be `,`, `;` or a tab, whichever the head uses, and
 * lines may end as on any system. A row of another length is a problem; so is wrong quoting, which ends the reading, as
 * the start of the next row is unknown.
 */
export async function* readCsv(chunks: AsyncIterable<Buffer>, openRows: OpenRows): AsyncGenerator<Entry> {
  let head: Head | null = null;
  let readRow: ReturnType<OpenRows> | null = null;
  let isAllQuoted = false;
  for await (const row of splitRows(chunks)) {
    if ('problem' in row) {
      yield row;
      return;
    }
    const { line, cells } = row;
    if (!head || !readRow) {
      try {
        head = readHead(
          cells.map((cell) => cell ?? ''),
          row.delimiter,
        );
        readRow = openRows(head);
      } catch (error) {
        yield { line, problem: (error as Error).message };
        return;
      }
      ({ isAllQuoted } = row);
      continue;
    }
    // A program that quotes every cell says nothing by `""`.
    const said = isAllQuoted ? cells.map((cell) => (cell === '' ? null : cell)) : cells;
    if (said.every((cell) => cell === null)) continue;
    const length = cells.reduce((sum, cell) => sum + (cell?.length ?? 0), 0);
    try {
      yield { line, value: readRow(fitRow(head, said)), length };
    } catch (error) {
      yield { line, problem: (error as Error).message };
    }
  }
}

type HeadRow = Row & { delimiter: string; isAllQuoted: boolean };

async function* splitRows(chunks: AsyncIterable<Buffer>): AsyncGenerator<HeadRow | { line: number; problem: string }> {
  const { parse } = await import('csv-parse');
  let line = 1;
  let rows: HeadRow[] = [];
  let failure: CsvError | null = null;
  let isAllQuoted = true;
  let parser: ReturnType<typeof parse> | null = null;
  const open = (delimiter: string): ReturnType<typeof parse> => {
    const opened = parse({
      delimiter,
      record_delimiter: LINE_ENDS,
      relax_column_count: true,
      max_record_size: MAX_ENTRY_BYTES,
      cast: (cell, { quoting, records }) => {
        if (records === 0 && !quoting) isAllQuoted = false;
        return cell === '' && !quoting ? null : cell;
      },
      on_record: (cells: (string | null)[]) => {
        rows.push({ line, cells, delimiter, isAllQuoted });
        for (const cell of cells) if (cell) line += cell.split(LINE_END).length - 1;
        line += 1;
        return null;
      },
    });
    opened.on('error', (error) => (failure = error as CsvError));
    opened.resume();
    return opened;
  };
  /** Everything is parsed when it is written: no row is kept inside the parser. */
  const write = async (text: string, isLast = false): Promise<void> => {
    parser ??= open(findDelimiter(text.split(LINE_END, 1)[0]!));
    const into = parser;
    if (text !== '') await new Promise<void>((resolve) => into.write(text, () => resolve()));
    if (isLast && !failure) {
      await new Promise<void>((resolve) => into.once('error', () => resolve()).end(() => resolve()));
    }
  };
  let begun = '';
  for await (const { text, isLast, isWrong } of decode(chunks)) {
    begun += text;
    // The delimiter is known when the whole head row is there.
    if (parser || isLast || isWrong || LINE_END.test(begun.slice(0, -1)) || begun.length > MAX_ENTRY_BYTES) {
      // What follows nothing completes no row, and lets the parser give those that it has looked ahead of.
      await write(isWrong ? begun + LOOK_AHEAD : begun, isLast && !isWrong);
      begun = '';
    }
    yield* rows;
    rows = [];
    if (failure || isWrong) {
      yield { line, problem: isWrong || !failure ? NOT_UTF8 : explain(failure) };
      return;
    }
  }
}

/** The text in pieces, up to the first byte that is no UTF-8. */
async function* decode(
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<{ text: string; isLast: boolean; isWrong: boolean }> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const chunk of chunks) {
    try {
      yield { text: decoder.decode(chunk, { stream: true }), isLast: false, isWrong: false };
    } catch {
      const right = chunk.subarray(0, Math.max(0, findNonUtf8(chunk)));
      yield { text: new TextDecoder().decode(right), isLast: false, isWrong: true };
      return;
    }
  }
  try {
    yield { text: decoder.decode(), isLast: true, isWrong: false };
  } catch {
    yield { text: '', isLast: true, isWrong: true };
  }
}

const PROBLEMS: Record<string, string> = {
  CSV_QUOTE_NOT_CLOSED: 'a quotation mark is never closed',
  CSV_INVALID_CLOSING_QUOTE: 'text behind a closing quotation mark: inside quotation marks, write them twice',
  INVALID_OPENING_QUOTE: 'a quotation mark inside a cell: put the cell into quotation marks and write it twice',
  CSV_MAX_RECORD_SIZE: 'longer than 16 MB: is a quotation mark never closed?',
};

const explain = ({ code, message }: CsvError): string =>
  `${PROBLEMS[code] ?? message}. Nothing behind this line was read`;
