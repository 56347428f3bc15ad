import { MAX_ENTRY_BYTES, type Entry } from './entry.js';
import { NOT_UTF8 } from './parse-entry.js';

const DELIMITERS = [',', ';', '\t'];

interface Row {
  line: number;
  delimiter: string;
  cells: string[];
  length: number;
}

/**
 * Rows below a head row (RFC 4180; the delimiter may be `,`, `;` or a tab, whichever the head uses). A row with another
 * number of cells is a problem.
 */
export async function* readCsv(
  chunks: AsyncIterable<Buffer>,
  readRow: (row: ReadonlyMap<string, string>, delimiter: string) => unknown,
): AsyncGenerator<Entry> {
  let head: string[] | null = null;
  let columns = 0;
  for await (const row of splitRows(chunks)) {
    if ('problem' in row) {
      yield row;
      return;
    }
    if (!head) {
      columns = row.cells.length;
      head = withoutEmptyEnd(row.cells.map((cell) => cell.trim()));
      const repeated = head.find((name, index) => name === '' || head!.indexOf(name) !== index);
      if (repeated === undefined) continue;
      yield {
        line: row.line,
        problem: repeated === '' ? 'a column has no name' : `two columns are named "${repeated}"`,
      };
      return;
    }
    if (row.cells.every((cell) => cell === '')) continue;
    const cells = row.cells.length > head.length ? withoutEmptyEnd(row.cells, head.length) : row.cells;
    if (cells.length === head.length) {
      const named = new Map(head.map((name, index) => [name, cells[index]!]));
      yield { line: row.line, value: readRow(named, row.delimiter), length: row.length };
    } else {
      const problem =
        cells.length > head.length && cells.length <= columns
          ? 'a column has no name'
          : `${row.cells.length} cells under ${head.length} column names`;
      yield { line: row.line, problem };
    }
  }
}

async function* splitRows(chunks: AsyncIterable<Buffer>): AsyncGenerator<Row | { line: number; problem: string }> {
  const splitter = new RowSplitter();
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (chunk?: Buffer): string | null => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      return null;
    }
  };
  for await (const chunk of chunks) {
    const text = decode(chunk);
    if (text !== null) yield* splitter.feed(text);
    if (text === null || splitter.tooLong) {
      const problem = text === null ? NOT_UTF8 : 'longer than 16 MB: is a quotation mark never closed?';
      yield { line: splitter.startLine, problem };
      return;
    }
  }
  if (decode() === null) yield { line: splitter.startLine, problem: NOT_UTF8 };
  else yield* splitter.end();
}

class RowSplitter {
  startLine = 1;
  private line = 1;
  private delimiter: string | null = null;
  private cells: string[] = [];
  private cell = '';
  private rowLength = 0;
  private quoted = false;
  /** The character before was a quotation mark inside a quoted cell: its end, or half of a doubled one. */
  private closing = false;
  private begun = '';

  get tooLong(): boolean {
    return this.rowLength > MAX_ENTRY_BYTES;
  }

  *feed(text: string): Generator<Row> {
    // The delimiter is known only when the whole head row is there.
    if (this.delimiter === null) {
      this.begun += text;
      const end = this.begun.indexOf('\n');
      if (end === -1) {
        this.rowLength = this.begun.length;
        return;
      }
      text = this.begun;
      this.begun = '';
      this.rowLength = 0;
      this.delimiter = mostUsed(text.slice(0, end));
    }
    for (const character of text) yield* this.take(character);
  }

  *end(): Generator<Row | { line: number; problem: string }> {
    if (this.begun !== '') yield* this.feed('\n');
    if (this.quoted && !this.closing) {
      yield { line: this.startLine, problem: 'a quotation mark is never closed' };
      return;
    }
    if (this.cell !== '' || this.cells.length > 0) yield this.endRow();
  }

  private *take(character: string): Generator<Row> {
    this.rowLength++;
    if (character === '\n') this.line++;
    if (this.quoted) {
      if (this.closing) {
        this.closing = false;
        if (character === '"') {
          this.cell += '"';
          return;
        }
        this.quoted = false;
      } else {
        if (character === '"') this.closing = true;
        else this.cell += character;
        return;
      }
    }
    if (character === '"' && this.cell === '') this.quoted = true;
    else if (character === this.delimiter) this.endCell();
    else if (character === '\n') yield this.endRow();
    else if (character !== '\r') this.cell += character;
  }

  private endCell(): void {
    this.cells.push(this.cell);
    this.cell = '';
  }

  private endRow(): Row {
    this.endCell();
    const row = { line: this.startLine, delimiter: this.delimiter!, cells: this.cells, length: this.rowLength };
    this.cells = [];
    this.rowLength = 0;
    this.quoted = false;
    this.closing = false;
    this.startLine = this.line;
    return row;
  }
}

/** Spreadsheets end every row with as many delimiters as some row once had. */
function withoutEmptyEnd(cells: string[], least = 1): string[] {
  let end = cells.length;
  while (end > least && cells[end - 1] === '') end--;
  return cells.slice(0, end);
}

function mostUsed(head: string): string {
  const count = (delimiter: string): number => head.split(delimiter).length;
  return DELIMITERS.reduce((best, each) => (count(each) > count(best) ? each : best));
}
