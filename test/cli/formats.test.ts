import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readCsvRow } from '../../cli/formats/csv-row.js';
import { findFormat, readEntries, type Format } from '../../cli/formats/read-entries.js';
import { writeEntries } from '../../cli/formats/write-entries.js';
import type { Field } from '../../src/features/collections/fields/field.js';

const FIELDS: Field[] = [
  { name: 'name', type: 'String' },
  { name: 'area', type: 'Number' },
  { name: 'landlocked', type: 'Boolean' },
  { name: 'borders', type: 'Array' },
  { name: 'geo', type: 'Object', fields: [{ name: 'lat', type: 'Number' }] },
];

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

type Read = { line: number; value: unknown } | { line: number; problem: string };

async function readAll(text: string | Buffer, format: Format, size = 7): Promise<Read[]> {
  const entries: Read[] = [];
  const readRow = (row: ReadonlyMap<string, string>): unknown => readCsvRow(FIELDS, row);
  for await (const entry of readEntries(inPieces(Buffer.from(text), size), format, { readRow })) {
    entries.push('value' in entry ? { line: entry.line, value: entry.value } : entry);
  }
  return entries;
}

describe('a file of documents', () => {
  it('is read by the format that its name tells', () => {
    expect(['a.ndjson', 'a.jsonl', 'A.JSON', 'a.csv', 'a.txt', '-'].map(findFormat)).toEqual([
      'ndjson',
      'ndjson',
      'json',
      'csv',
      null,
      null,
    ]);
  });
});

describe('NDJSON', () => {
  it('is one document per line; empty lines, CRLF, a byte order mark and a missing last line feed do no harm', async () => {
    expect(await readAll('\ufeff{"a":1}\r\n\n  \n{"a":"é😀"}', 'ndjson')).toEqual([
      { line: 1, value: { a: 1 } },
      { line: 4, value: { a: 'é😀' } },
    ]);
  });

  it('names the line that is not JSON and goes on', async () => {
    const [first, second, third] = await readAll('{"a":1}\n{"a":\n{"a":3}\n', 'ndjson');
    expect([first, third]).toEqual([
      { line: 1, value: { a: 1 } },
      { line: 3, value: { a: 3 } },
    ]);
    expect(second).toMatchObject({ line: 2, problem: expect.stringContaining('not valid JSON') as string });
  });

  it('refuses a line of more than 16 MB without keeping it, and reads the next', async () => {
    const entries = await readAll(`"${'x'.repeat(17 * 1024 * 1024)}"\n{"a":1}\n`, 'ndjson', 64 * 1024);
    expect(entries).toEqual([
      { line: 1, problem: 'longer than 16 MB' },
      { line: 2, value: { a: 1 } },
    ]);
  });
});

describe('a JSON array', () => {
  it('gives its elements with the lines on which they begin', async () => {
    expect(await readAll('[\n {"a":[1,{"b":"]}"}]},\n\n {"a":"\\"["}\n]\n', 'json')).toEqual([
      { line: 2, value: { a: [1, { b: ']}' }] } },
      { line: 4, value: { a: '"[' } },
    ]);
  });

  it('may be a sequence of objects instead', async () => {
    expect(await readAll('{"a":1}\n{"a":2}', 'json')).toEqual([
      { line: 1, value: { a: 1 } },
      { line: 2, value: { a: 2 } },
    ]);
  });

  it('gives bare values as they are, for the check of documents to refuse', async () => {
    expect(await readAll('[1, "x" ,null]', 'json')).toEqual([
      { line: 1, value: 1 },
      { line: 1, value: 'x' },
      { line: 1, value: null },
    ]);
  });

  it('reports a broken element and goes on with the next', async () => {
    const entries = await readAll('[{"a":1},\n{a:2},\n{"a":3}]', 'json');
    expect(entries.map((entry) => ('problem' in entry ? entry.line : entry.value))).toEqual([{ a: 1 }, 2, { a: 3 }]);
  });

  it.each([
    ['[{"a":1},{"a":', 'the file ends inside this document'],
    ['[{"a":1}', 'the file ends before the array is closed'],
    ['hello', 'expected a JSON array'],
    ['[{"a":1}] {"a":2}', 'something after the end'],
  ])('says what is wrong with %j', async (text, problem) => {
    expect((await readAll(text, 'json')).at(-1)).toMatchObject({ problem: expect.stringContaining(problem) as string });
  });

  it('gives what JSON.parse gives, however the bytes arrive', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue()),
        fc.nat(3),
        fc.integer({ min: 1, max: 9 }),
        async (values, indent, size) => {
          const entries = await readAll(JSON.stringify(values, null, indent), 'json', size);
          expect(entries.map((entry) => ('value' in entry ? entry.value : entry.problem))).toEqual(
            JSON.parse(JSON.stringify(values)),
          );
        },
      ),
      { seed: 20261121, numRuns: 300 },
    );
  });
});

describe('CSV', () => {
  it('reads cells by the declared types, nested names by dots, and leaves out what is empty', async () => {
    const text =
      'name,area,landlocked,borders,geo.lat,other\r\n"Åland, the ""isles""",1580,false,"[""SWE""]",60.1,7\r\nX,,,,,\r\n';
    expect(await readAll(text, 'csv')).toEqual([
      {
        line: 2,
        value: {
          name: 'Åland, the "isles"',
          area: 1580,
          landlocked: false,
          borders: ['SWE'],
          geo: { lat: 60.1 },
          other: '7',
        },
      },
      { line: 3, value: { name: 'X' } },
    ]);
  });

  it('keeps a cell that is not of its type as text, for the check of documents to refuse by name', async () => {
    expect(await readAll('area,landlocked,borders\nbig,maybe,none\n', 'csv')).toEqual([
      { line: 2, value: { area: 'big', landlocked: 'maybe', borders: 'none' } },
    ]);
  });

  it('takes line feeds inside quotation marks, and counts lines through them', async () => {
    expect(await readAll('name\n"a\nb"\nc\n', 'csv')).toEqual([
      { line: 2, value: { name: 'a\nb' } },
      { line: 4, value: { name: 'c' } },
    ]);
  });

  it('takes the delimiter that its head uses', async () => {
    expect(await readAll('name;area\na,b;1\n', 'csv')).toEqual([{ line: 2, value: { name: 'a,b', area: 1 } }]);
    expect(await readAll('name\tarea\nx\t1', 'csv')).toEqual([{ line: 2, value: { name: 'x', area: 1 } }]);
  });

  it('reports rows of another length and goes on', async () => {
    expect(await readAll('name,area\na\nb,1,2\nc,3\n', 'csv')).toEqual([
      { line: 2, problem: '1 cells under 2 column names' },
      { line: 3, problem: '3 cells under 2 column names' },
      { line: 4, value: { name: 'c', area: 3 } },
    ]);
  });

  it.each([
    ['a,a\n1,2\n', 'two columns are named "a"'],
    ['a,\n1,2\n', 'a column has no name'],
    ['a\n"x', 'a quotation mark is never closed'],
  ])('says what is wrong with %j', async (text, problem) => {
    expect((await readAll(text, 'csv')).at(-1)).toMatchObject({ problem });
  });

  it('cannot reach a prototype through a column name', async () => {
    const [entry] = await readAll('__proto__.polluted,name\nyes,x\n', 'csv');
    expect(Object.keys((entry as { value: object }).value)).toEqual(['__proto__', 'name']);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});

describe('a file that is not UTF-8', () => {
  const latin = (text: string): Buffer => Buffer.from(text, 'latin1');

  it('is not taken for something else: NDJSON and JSON name the document, and the next is read', async () => {
    const problem = 'not UTF-8: name what it is with --encoding, or convert the file';
    const third = { line: 3, value: { name: 'Bern' } };
    const rows = '{"name":"Genf"},\n{"name":"Zürich"},\n{"name":"Bern"}';
    expect((await readAll(latin(`[${rows}]`), 'json')).slice(1)).toEqual([{ line: 2, problem }, third]);
    expect((await readAll(latin(rows.replaceAll(',\n', '\n')), 'ndjson')).slice(1)).toEqual([
      { line: 2, problem },
      third,
    ]);
  });

  it.each(['name\nGenf\nZürich\nBern\n', 'name\nGenf\nZÃ'])('ends the reading of CSV: %j', async (text) => {
    const entries = await readAll(latin(text), 'csv', 10);
    expect(entries).toEqual([
      { line: 2, value: { name: 'Genf' } },
      { line: 3, problem: 'not UTF-8: name what it is with --encoding, or convert the file' },
    ]);
  });
});

describe('written documents', () => {
  const documents = [
    { name: 'a "quoted", text\nof two lines', area: 1.5, landlocked: true, borders: ['X', 'Y'] },
    { name: ' padded ', area: -1, landlocked: false, borders: [] },
  ];
  async function* each(): AsyncGenerator<Record<string, unknown>> {
    yield* documents;
  }

  it.each(['ndjson', 'json', 'csv'] as const)('are read back as they were from %s', async (format) => {
    let text = '';
    for await (const piece of writeEntries(each(), format, ['name', 'area', 'landlocked', 'borders'])) text += piece;
    const entries = await readAll(text, format);
    expect(entries.map((entry) => ('value' in entry ? entry.value : entry.problem))).toEqual(documents);
  });
});
