import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findFormat, readEntries, type Format, writeEntries } from '../../cli/formats/entries.js';
import { rowReader, type Head } from '../../src/exchange/csv-row.js';
import type { Field } from '../world/collections.js';

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

const LIST = { name: 'notes', fields: new Set(FIELDS.map(({ name }) => name)) };

async function readAll(text: string | Buffer, format: Format, size = 7, fields = FIELDS, list = LIST): Promise<Read[]> {
  const entries: Read[] = [];
  const openRows = (head: Head) => rowReader(head, fields);
  for await (const entry of readEntries(inPieces(Buffer.from(text), size), format, { openRows, list })) {
    if ('note' in entry) continue;
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
        fc.array(fc.jsonValue()).map(storable),
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
    ['a\n"x', 'a quotation mark is never closed. Nothing behind this line was read'],
    [
      'a,b\nx,"1\\" 2"',
      'text behind a closing quotation mark: inside quotation marks, write them twice. Nothing behind this line was read',
    ],
    [
      'a,b\nx,5" pipe',
      'a quotation mark inside a cell: put the cell into quotation marks and write it twice. Nothing behind this line was read',
    ],
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

  const NAMES = [
    'name',
    'area',
    'landlocked',
    'borders',
    'toString',
    '__proto',
    '=1+1',
    ' a',
    '',
    'bsvc-csv/1',
    'a,b\n',
  ];
  const text = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom(
      '',
      'null',
      '12',
      '-5',
      '007',
      'true',
      '[1]',
      '{}',
      '"x"',
      "'",
      "'=1",
      '=1+1',
      '+49 1',
      '@a',
      ' x ',
    ),
    fc.constantFrom('\t=1', '\r', '\n', 'a\r\nb', '\ufeffx', '1e3', '2026-01-02T03:04:05.678Z', ';', 'a"b'),
  );
  const value = fc.oneof(
    text,
    fc.jsonValue({ maxDepth: 2 }).map(storable),
    fc.date({ noInvalidDate: true }),
    fc.integer(),
  );

  it('are read back as they were from every format, whatever they hold and whatever is declared', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.dictionary(fc.constantFrom(...NAMES), value), { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        fc.integer({ min: 1, max: 40 }),
        async (rows, mark, size) => {
          const expected = JSON.parse(JSON.stringify(rows)) as Record<string, unknown>[];
          for (const format of ['ndjson', 'json', 'csv'] as const) {
            const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
            const given = async function* (): AsyncGenerator<Record<string, unknown>> {
              yield* rows;
            };
            let written = '';
            for await (const piece of writeEntries(given(), format, columns, { mark })) written += piece;
            for (const fields of [[], ...(format === 'csv' ? [declaredFor(expected)] : [])]) {
              const entries = await readAll(written, format, size, fields, { name: 'none', fields: new Set(columns) });
              const read = entries.map((entry) => ('value' in entry ? { ...(entry.value as object) } : entry.problem));
              // A row without a cell cannot be told from an empty line; every document has an id.
              expect(read).toEqual(format === 'csv' ? expected.filter((row) => Object.keys(row).length > 0) : expected);
            }
          }
        },
      ),
      { seed: 20261128, numRuns: 300 },
    );
  });

  it('hold nothing in CSV that a spreadsheet would run, names of fields included', async () => {
    for (const start of ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']) {
      const hostile = `${start}HYPERLINK("http://x")`;
      const given = async function* (): AsyncGenerator<Record<string, unknown>> {
        yield { [hostile]: hostile, n: -5 };
      };
      let written = '';
      for await (const piece of writeEntries(given(), 'csv', [hostile, 'n'])) written += piece;
      written = written.replaceAll('\r\n', '\n');
      expect(written).not.toMatch(/(^|[,\n]"?)[=+@\t\r＝＋－＠]/);
      expect(written).not.toMatch(/(^|[,\n]"?)-H/);
      expect(written).toContain(',-5,');
    }
  });

  it('leave files of other programs as they are: apostrophes, and numbers in undeclared columns', async () => {
    const foreign = "surname,formula,zip\n'tHart,'=1,007\n";
    expect(await readAll(foreign, 'csv')).toEqual([
      { line: 2, value: { surname: "'tHart", formula: "'=1", zip: '007' } },
    ]);
  });
});

/** Without whole numbers beyond 2^53 in digits, which no document has. */
function storable<T>(values: T): T {
  const isLong = (each: unknown): boolean =>
    Number.isInteger(each) && !Number.isSafeInteger(each) && Math.abs(each as number) < 1e21;
  return JSON.parse(JSON.stringify(values), (_, each: unknown) => (isLong(each) ? 0 : each)) as T;
}

/** Fields whose types are those of the values, as in a collection that checks them. */
function declaredFor(rows: readonly Record<string, unknown>[]): Field[] {
  const types = new Map<string, Set<string>>();
  for (const row of rows) {
    for (const [name, each] of Object.entries(row)) {
      const type = each === null ? 'null' : Array.isArray(each) ? 'Array' : typeof each;
      types.set(name, (types.get(name) ?? new Set()).add(type));
    }
  }
  const known: Record<string, Field['type']> = {
    string: 'String',
    number: 'Number',
    boolean: 'Boolean',
    Array: 'Array',
  };
  return [...types].flatMap(([name, found]) => {
    const type = found.size === 1 ? known[[...found][0]!] : undefined;
    return type ? [{ name, type }] : [];
  });
}

describe('CSV of other programs', () => {
  it.each([
    ['CR', '\r'],
    ['LF', '\n'],
    ['CRLF', '\r\n'],
  ])('may end its lines by %s, also inside quotation marks', async (_, end) => {
    for (const size of [1, 3, 1000]) {
      const text = ['name,area', `"a${end}b",1`, 'c,2', ''].join(end);
      expect(await readAll(text, 'csv', size)).toEqual([
        { line: 2, value: { name: `a${end}b`, area: 1 } },
        { line: 4, value: { name: 'c', area: 2 } },
      ]);
    }
  });

  it('may end its lines in several ways', async () => {
    expect(await readAll('name,area\r\na,1\nb,2\rc,3', 'csv', 2)).toHaveLength(3);
  });

  it('says an empty text by "", unless all cells are in quotation marks', async () => {
    expect(await readAll('name,area\n"",1\n,2\n', 'csv')).toEqual([
      { line: 2, value: { name: '', area: 1 } },
      { line: 3, value: { area: 2 } },
    ]);
    expect(await readAll('"name","area"\n"","1"\n', 'csv')).toEqual([{ line: 2, value: { area: 1 } }]);
  });

  it('keeps numbers that lose digits as text, for the check of documents to refuse', async () => {
    expect(await readAll('area\n9007199254740993\n0.30000000000000004441\n1.50\n', 'csv')).toEqual([
      { line: 2, value: { area: '9007199254740993' } },
      { line: 3, value: { area: '0.30000000000000004441' } },
      { line: 4, value: { area: 1.5 } },
    ]);
  });
});

describe('numbers of JSON', () => {
  it('that lose digits keep all of them, whatever text is around', async () => {
    const text =
      '{"a":9007199254740993,"b":"9007199254740993 \\" 12345678901234567890","c":[-12345678901234567.5],"d":0.1}';
    for (const format of ['ndjson', 'json'] as const) {
      expect(await readAll(text, format)).toEqual([
        {
          line: 1,
          value: {
            a: { $numberDecimal: '9007199254740993' },
            b: '9007199254740993 " 12345678901234567890',
            c: [{ $numberDecimal: '-12345678901234567.5' }],
            d: 0.1,
          },
        },
      ]);
    }
  });
});

describe('an object around a list', () => {
  const rows = [{ title: 'a', _id: 1 }, { title: 'b' }];
  const around = (before: object, name: string, after: object = {}): string =>
    JSON.stringify({ ...before, [name]: rows, ...after }, null, 1);

  it.each([
    ['the hosted service', around({}, 'notes')],
    ['with what is said of it', around({ schemaVersion: 1, exportedAt: 'x' }, 'notes', { count: 2 })],
    ['an answer of Firestore', around({}, 'documents', { nextPageToken: 'x' })],
    ['an answer of Parse', around({}, 'results')],
    ['a page of PocketBase', around({ page: 1, perPage: 30, totalItems: 2 }, 'items')],
    ['an answer of ours', JSON.stringify({ success: true, data: { items: rows, nextCursor: null }, message: '' })],
    ['other lists beside it', around({ tags: [{ a: 1 }] }, 'notes')],
  ])('is taken apart: %s', async (_, text) => {
    for (const size of [1, 7, 100_000]) {
      const read = await readAll(text, 'json', size);
      expect(read.map((entry) => ('value' in entry ? entry.value : entry))).toEqual(rows);
    }
    const line = await readAll(JSON.stringify(JSON.parse(text)), 'ndjson');
    expect(line.map((entry) => ('value' in entry ? entry.value : entry))).toEqual(rows);
  });

  it('names the lines of its elements', async () => {
    const read = await readAll('{\n "notes": [\n  {"a":1},\n  {"a":}\n ]\n}', 'json');
    expect(read).toMatchObject([
      { line: 3 },
      { line: 4, problem: expect.stringContaining('not valid JSON') as string },
    ]);
  });

  it('may be larger than any document', async () => {
    const row = { title: 'x'.repeat(1024 * 1024) };
    const text = JSON.stringify({ count: 20, notes: Array.from({ length: 20 }, () => row) });
    const read = await readAll(text, 'json', 256 * 1024);
    expect(read).toHaveLength(20);
    expect(read.every((entry) => 'value' in entry)).toBe(true);
    const other = await readAll(text.replace('notes', 'posts'), 'json', 256 * 1024);
    expect(other).toMatchObject([{ problem: expect.stringContaining('without a list') as string }]);
  });

  it.each([
    ['under another name', around({}, 'posts')],
    ['documents by their ids', JSON.stringify({ notes: { a: { title: 'x' } } })],
    ['a whole Firestore', JSON.stringify({ __collections__: { notes: { a: { title: 'x' } } } })],
  ])('is never stored as a document: %s', async (_, text) => {
    for (const format of ['json', 'ndjson'] as const) {
      const read = await readAll(JSON.stringify(JSON.parse(text)), format);
      expect(read).toMatchObject([{ line: 1, problem: expect.any(String) as string }]);
    }
  });

  it.each([
    ['a declared list', JSON.stringify({ borders: [{ a: 1 }] })],
    ['a list beside fields', JSON.stringify({ customer: 'x', items: [{ sku: 1 }] })],
    ['a list of texts', JSON.stringify({ tags: ['a'] })],
    ['a single one', JSON.stringify({ name: 'x' })],
  ])('is not seen in a document: %s', async (_, text) => {
    for (const format of ['json', 'ndjson'] as const) {
      expect(await readAll(text, format)).toEqual([{ line: 1, value: JSON.parse(text) as unknown }]);
    }
  });
});
