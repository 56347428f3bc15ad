import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { Documents } from '../../src/engine/storage/documents.js';
import { openCliHome, type CliOptions } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const inShop = (argv: string[], options: CliOptions = {}) =>
  home.bsvc(argv, { ...options, env: { BSVC_PROJECT: 'shop', ...options.env } });

let made = 0;
const addCollection = async (...fields: string[]): Promise<string> => {
  const name = `c${++made}`;
  await inShop(['collection', 'add', name, ...fields.flatMap((field) => ['--field', field])]);
  return name;
};
const stored = async (name: string): Promise<Record<string, unknown>[]> => {
  const { stdout } = await inShop(['data', 'query', name, '--sort', 'createdAt', '--limit', '1000', '--json']);
  return (JSON.parse(stdout) as { items: Record<string, unknown>[] }).items;
};
const file = (name: string, content: string | Buffer): string => {
  writeFileSync(join(home.dir, name), content);
  return name;
};

await home.bsvc(['project', 'create', 'shop']);

describe('bsvc data import of what spreadsheets write', () => {
  const FIELDS = ['name:String!', 'price:Number', 'sold:Boolean', 'note:String'];
  const ROWS = [
    { name: 'Äpfel', price: 1.5, sold: true, note: 'two\nlines' },
    { name: 'Birnen', price: 1234.5, sold: false },
  ];
  const TEXT = 'name;price;sold;note;;\r\nÄpfel;1,5;TRUE;"two\nlines";;\r\nBirnen;1.234,5;no;;;\r\n;;;;;\r\n';

  it.each([
    ['a byte order mark, semicolons, CRLF, decimal commas and empty columns', 'bom.csv', `\uFEFF${TEXT}`, []],
    ['tabs', 'tabs.tsv', TEXT.replaceAll(';', '\t'), []],
    ['UTF-16', 'wide.csv', Buffer.from(`\uFEFF${TEXT}`, 'utf16le'), []],
    ['Latin-1', 'old.csv', Buffer.from(TEXT, 'latin1'), ['--encoding', 'latin1']],
    ['other names', 'named.csv', TEXT.replace('name', 'Bezeichnung'), ['--column', 'Bezeichnung=name']],
  ])('reads %s', async (_, name, content, words) => {
    const collection = await addCollection(...FIELDS);
    const { code, stderr } = await inShop(['data', 'import', collection, file(name, content), ...words]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect((await stored(collection)).sort((a, b) => (a.name as string).localeCompare(b.name as string))).toMatchObject(
      ROWS,
    );
  });

  it('leaves a comma between digits alone where commas separate cells', async () => {
    const collection = await addCollection(...FIELDS);
    const report = await inShop(['data', 'import', collection, file('plain.csv', 'name,price\na,"1,5"\n'), '--json']);
    expect(report.json()).toMatchObject({
      rejected: [{ line: 2, message: expect.stringContaining('price must be a Number') as string }],
    });
  });

  it('names every broken rule of a line', async () => {
    const collection = await addCollection(...FIELDS);
    const report = await inShop([
      'data',
      'import',
      collection,
      file('bad.csv', 'name,price,sold\n,x,perhaps\n'),
      '--json',
    ]);
    const [{ message }] = report.json<{ rejected: [{ message: string }] }>().rejected;
    for (const field of ['name', 'price', 'sold']) expect(message).toContain(field);
  });
});

describe('bsvc data import that is broken off', () => {
  const LINES = Array.from({ length: 30 }, (_, at) => JSON.stringify({ at })).join('\n');

  it('tells what it stored, and goes on from there with --skip', async () => {
    const collection = await addCollection('at:Number!');
    const path = file('lines.ndjson', LINES);
    const stop = new AbortController();
    let documents = 0;
    const store = Documents.prototype.insert;
    const spy = vi.spyOn(Documents.prototype, 'insert').mockImplementation(function (this: Documents, to, ...given) {
      // The first of the second batch.
      if (to.ns.includes('.documents_') && ++documents === 11) stop.abort('SIGINT');
      store.call(this, to, ...given);
    });
    const words = ['data', 'import', collection, path, '--batch', '10'];
    const outcome = await inShop([...words, '--json'], { stop: stop.signal });
    spy.mockRestore();
    const { read, inserted } = outcome.json<{ read: number; inserted: number }>();
    expect({ code: outcome.code, stderr: outcome.stderr.split('\n')[0] }).toEqual({
      code: 130,
      stderr: `bsvc: Interrupted. 20 documents stored. To go on, run it again with --skip 20.`,
    });
    expect([read, inserted, (await stored(collection)).length]).toEqual([20, 20, 20]);
    await inShop([...words, '--skip', String(read)]);
    expect((await stored(collection)).map(({ at }) => at).sort((a, b) => Number(a) - Number(b))).toEqual(
      Array.from({ length: 30 }, (_, at) => at),
    );
  });
});

describe('bsvc data import --key', () => {
  it('changes what is there, stores the rest, and keeps what a line leaves out', async () => {
    const collection = await addCollection('sku:String!&', 'price:Number', 'note:String');
    const first = '{"sku":"a","price":1,"note":"kept"}\n{"sku":"b","price":2}\n';
    await inShop(['data', 'import', collection, '-', '--format', 'ndjson', '--key', 'sku'], { stdin: first });
    const second = '{"sku":"a","price":3}\n{"sku":"c","price":4}\n{"sku":"c","price":5}\n{"price":6}\n';
    const words = ['data', 'import', collection, '-', '--format', 'ndjson', '--key', 'sku', '--json'];
    const report = await inShop(words, { stdin: second });
    expect(report.json()).toMatchObject({ inserted: 1, updated: 2, rejectedCount: 1, rejected: [{ line: 4 }] });
    expect((await stored(collection)).sort((a, b) => (a.sku as string).localeCompare(b.sku as string))).toMatchObject([
      { sku: 'a', price: 3, note: 'kept' },
      { sku: 'b', price: 2 },
      { sku: 'c', price: 5 },
    ]);
  });

  it('takes an export back by _id', async () => {
    const collection = await addCollection('n:Number');
    await inShop(['data', 'import', collection, '-', '--format', 'ndjson'], { stdin: '{"n":1}\n' });
    const exported = (await inShop(['data', 'export', collection])).stdout.replace('"n":1', '"n":2');
    const words = ['data', 'import', collection, '-', '--format', 'ndjson', '--key', '_id'];
    expect((await inShop(words, { stdin: exported })).stdout).toContain('Imported 0 documents');
    expect(await stored(collection)).toMatchObject([{ n: 2 }]);
  });

  it('refuses a field that is not unique', async () => {
    const collection = await addCollection('n:Number');
    const words = ['data', 'import', collection, '-', '--format', 'ndjson', '--key', 'n'];
    const { code, stderr } = await inShop(words, { stdin: '{"n":1}\n' });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining('is not a unique field') as string,
    });
  });
});
