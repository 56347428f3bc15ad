import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { aggregate } from '../../src/engine/commands/read/aggregate.js';
import { countCommand } from '../../src/engine/commands/read/count.js';
import { explain } from '../../src/engine/commands/read/explain.js';
import { find } from '../../src/engine/commands/read/find.js';
import { openCliHome, type CliOptions } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const inShop = (argv: string[], options: CliOptions = {}) =>
  home.bsvc(argv, { ...options, env: { BSVC_PROJECT: 'shop', ...options.env } });
const COUNTRIES = join(import.meta.dirname, '..', '..', 'node_modules', 'world-countries', 'countries.json');

let made = 0;
const addCollection = async (...words: string[]): Promise<string> => {
  const name = `c${++made}`;
  await inShop(['collection', 'add', name, ...words]);
  return name;
};
const exported = async (name: string, ...words: string[]): Promise<Record<string, unknown>[]> => {
  const { stdout } = await inShop(['data', 'export', name, ...words]);
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
};

interface Report {
  inserted: number;
  rejectedCount: number;
  rejected: { line: number; message: string }[];
}

await home.bsvc(['project', 'create', 'shop']);

describe('bsvc data insert', () => {
  it.each([
    ["{'title':'a'}", true],
    ['{title:"a"}', true],
    ['{"title": a}', true],
    ['{"title": ["a", \'b\']}', true],
    ['{"title": "a"', false],
    ['{"title": null "n": 1}', false],
  ])('says of %s what JSON has double quotes for: %s', async (text, isSaid) => {
    const { code, stderr } = await inShop(['data', 'insert', await addCollection('--field', 'title:String'), text]);
    expect([code, stderr.includes('in double quotes')]).toEqual([1, isSaid]);
    expect(stderr).toContain('The fields are not JSON');
  });

  it('names every broken rule of a document, and gives them to programs', async () => {
    const name = await addCollection('--field', 'title:String!', '--field', 'price:Number!');
    const { code, stderr } = await inShop(['data', 'insert', name, '{"title":5}', '--json']);
    const [sentence, json] = stderr.trim().split('\n');
    expect([code, sentence]).toEqual([1, 'bsvc: Validation failed: title must be a String; price is required.']);
    expect(JSON.parse(json!)).toMatchObject({
      success: false,
      code: 'VALIDATION_FAILED',
      details: [{ field: 'title' }, { field: 'price' }],
    });
  });
});

describe('bsvc data import', () => {
  it('imports the 250 countries of the world-countries package', async () => {
    const name = await addCollection('--flexible');
    const { code, stdout } = await inShop(['data', 'import', name, COUNTRIES, '--json']);
    expect({ code, report: JSON.parse(stdout) as Report }).toEqual({
      code: 0,
      report: { inserted: 250, rejectedCount: 0, rejected: [], collection: name },
    });
    const documents = await exported(name);
    const original = JSON.parse(readFileSync(COUNTRIES, 'utf8')) as { cca3: string }[];
    const laos = documents.find(({ cca3 }) => cca3 === 'LAO');
    expect(laos).toMatchObject(original.find(({ cca3 }) => cca3 === 'LAO')!);
    expect(documents).toHaveLength(250);
  });

  it('checks every line and stores nothing with --dry-run', async () => {
    const name = await addCollection('--field', 'title:String!');
    const words = ['data', 'import', name, '-', '--format', 'ndjson', '--dry-run'];
    const stdin = '{"title":"a"}\n{"titel":"b"}\n{"title":"c"}\n';
    const { code, stdout } = await inShop([...words, '--json'], { stdin });
    expect({ code, report: JSON.parse(stdout) as object }).toMatchObject({
      code: 1,
      report: { inserted: 0, fitting: 2, rejectedCount: 1, rejected: [{ line: 2 }], dryRun: true },
    });
    expect((await inShop(words, { stdin: '{"title":"a"}\n' })).stdout).toContain('1 document would be imported');
    expect((await inShop(['data', 'query', name, '--count', '-q'])).stdout).toBe('0\n');
  });

  it('reports refused lines with their numbers, stores the others, and ends with exit 1', async () => {
    const name = await addCollection('--field', 'title:String!', '--field', 'slug:String&', '--field', 'n:Number');
    const lines = [
      '{"title":"a","slug":"x"}',
      '{"slug":"y"}',
      '',
      '{"title":"b","slug":"x"}',
      '{"title":"c","n":"many"}',
      'not json',
      '{"title":"d","colour":"red"}',
      '{"title":"e","__proto__":{"admin":true}}',
      '[1,2]',
      '{"title":"f","slug":"z"}',
    ];
    const { code, stdout, stderr } = await inShop(['data', 'import', name, '-', '--format', 'ndjson', '--json'], {
      stdin: lines.join('\n'),
    });
    const report = JSON.parse(stdout) as Report;
    expect({ code, inserted: report.inserted }).toEqual({ code: 1, inserted: 2 });
    expect(report.rejected.map(({ line }) => line)).toEqual([2, 4, 5, 6, 7, 8, 9]);
    expect(report.rejected.map(({ message }) => message)).toEqual([
      'Validation failed: title is required',
      'slug must be unique: the value is taken',
      'Validation failed: n must be a Number',
      expect.stringContaining('not valid JSON'),
      expect.stringContaining('colour'),
      expect.stringContaining('__proto__'),
      'A document must be a JSON object',
    ]);
    expect(stderr).toContain('7 lines refused, 2 documents stored');
    expect((await exported(name)).map(({ title }) => title)).toEqual(['a', 'f']);
  });

  it('ends at the first refused line with --on-error stop; what was before stays', async () => {
    const name = await addCollection('--field', 'n:Number!');
    const stdin = '{"n":1}\n{"n":2}\n{"n":"x"}\n{"n":4}\n';
    const { code, stdout } = await inShop(
      ['data', 'import', name, '-', '--format', 'ndjson', '--on-error', 'stop', '--json'],
      { stdin },
    );
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ inserted: 2, rejected: [{ line: 3 }] });
    expect((await exported(name)).map(({ n }) => n)).toEqual([1, 2]);
  });

  it('reads CSV by the declared types', async () => {
    const name = await addCollection(
      '--field',
      'name:String!',
      '--field',
      'area:Number',
      '--field',
      'tags:Array(String)',
    );
    writeFileSync(join(home.dir, 'rows.csv'), 'name,area,tags\n"a, b",1.5,"[""x""]"\nc,big,\n');
    const { stdout } = await inShop(['data', 'import', name, 'rows.csv', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      inserted: 1,
      rejected: [{ line: 3, message: 'Validation failed: area must be a Number' }],
    });
    expect((await exported(name))[0]).toMatchObject({ name: 'a, b', area: 1.5, tags: ['x'] });
  });

  it('only looks at the form of the file with --dry-run', async () => {
    const name = await addCollection('--flexible');
    const words = ['data', 'import', name, '-', '--format', 'json', '--dry-run', '--json'];
    const { code, stdout } = await inShop(words, { stdin: '[{"a":1},{a:2}]' });
    expect({ code, report: JSON.parse(stdout) as Report }).toMatchObject({
      code: 1,
      report: { inserted: 0, rejected: [{ line: 1 }] },
    });
    expect(await exported(name)).toEqual([]);
  });

  it.each([
    [['data', 'import', 'absent', '-', '--format', 'ndjson'], 1, 'There is no collection "absent"'],
    [['data', 'import', 'users', '-', '--format', 'ndjson'], 1, 'bsvc user create'],
    [['data', 'import', 'absent', 'no-such-file.json'], 1, 'There is no file'],
    [['data', 'import', 'absent', '.', '--format', 'ndjson'], 1, ''],
    [['data', 'import', 'absent', 'x.json', '--batch', '0'], 2, 'from 1 to 9999'],
  ])('refuses %j', async (argv, code, text) => {
    const outcome = await inShop(argv, { stdin: '{}\n' });
    expect({ code: outcome.code, stdout: outcome.stdout }).toEqual({ code, stdout: '' });
    expect(outcome.stderr).toContain(text);
  });
});

describe('bsvc data export', () => {
  it('is taken back by import with the same ids and times, and not twice', async () => {
    const name = await addCollection('--field', 'title:String!', '--field', 'day:Date');
    const stdin = '{"title":"a","day":"2026-01-02"}\n{"title":"b"}\n';
    await inShop(['data', 'import', name, '-', '--format', 'ndjson'], { stdin });
    await inShop(['data', 'export', name, '--out', 'kept.ndjson']);
    const { stdout: declared } = await inShop(['project', 'export']);
    writeFileSync(join(home.dir, 'copy.yaml'), declared.replace('name: shop', 'name: copy'));
    expect((await home.bsvc(['apply', '-f', 'copy.yaml'])).code).toBe(0);
    const words = ['data', 'import', name, 'kept.ndjson', '--project', 'copy', '--json'];
    expect((await home.bsvc(words)).json()).toMatchObject({ inserted: 2, rejectedCount: 0 });
    const again = await home.bsvc(words);
    expect(again.json()).toMatchObject({
      inserted: 0,
      rejected: [{ line: 1, message: 'there is a document with this _id already' }, { line: 2 }],
    });
    expect(await exported(name, '--project', 'copy')).toEqual(await exported(name));
  });

  it.each(['ndjson', 'json', 'csv'])(
    'as %s is taken back whole: the trash, empty texts, defaults for null, formulas',
    async (format) => {
      const fields = [
        'title:String!',
        'zip:String',
        'at:Date',
        'live:Boolean=true',
        'tags:Array',
        'm:Object',
        'n:Number',
      ];
      const declared = fields.flatMap((field) => ['--field', field]);
      const name = await addCollection(...declared);
      const rows = [
        { title: '', zip: '007', at: '2026-01-02T03:04:05.678Z', live: null, tags: [], m: { a: null, b: [''] }, n: -5 },
        { title: '=1+1', zip: '12345', live: false, tags: ['=1', 2], n: 0.1 },
        { title: "'t Hart, null", zip: 'null', m: {} },
      ];
      const stdin = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
      await inShop(['data', 'import', name, '-', '--format', 'ndjson'], { stdin });
      const [, gone] = await exported(name);
      await inShop(['data', 'delete', name, String(gone!['_id'])]);
      const file = `whole.${format}`;
      await inShop(['data', 'export', name, '--include-deleted', '--bom', '--out', file]);
      await home.bsvc(['project', 'create', 'copy', '--if-not-exists']);
      await home.bsvc(['collection', 'add', name, '--project', 'copy', ...declared]);
      const report = await home.bsvc(['data', 'import', name, file, '--project', 'copy', '--json']);
      expect(report.json()).toMatchObject({ inserted: 3, rejectedCount: 0 });
      const before = await exported(name, '--include-deleted');
      expect(await exported(name, '--include-deleted', '--project', 'copy')).toEqual(before);
      expect(before.map(({ isDeleted }) => isDeleted)).toEqual([false, true, false]);
      expect(before[0]).toMatchObject({ title: '', live: true });
    },
  );

  it('writes NDJSON, JSON and CSV, by --format or by the name of the file', async () => {
    const name = await addCollection('--field', 'title:String!', '--field', 'tags:Array');
    const stdin = '{"title":"a, \\"b\\"","tags":["x"]}\n{"title":"c"}\n';
    await inShop(['data', 'import', name, '-', '--format', 'ndjson'], { stdin });
    const json = await inShop(['data', 'export', name, '--json']);
    expect(json.json<object[]>()).toMatchObject([{ title: 'a, "b"' }, { title: 'c' }]);
    const { stdout } = await inShop(['data', 'export', name, '--format', 'csv']);
    expect(stdout.split('\r\n').map((line) => line.split(',').slice(1, -3).join(','))).toEqual([
      'title,tags',
      '"a, ""b""","[""x""]"',
      'c,',
      '',
    ]);
    const filed = await inShop(['data', 'export', name, '--out', 'out.json', '--json']);
    expect(filed.json()).toEqual({ exported: 2, collection: name, file: 'out.json' });
    expect(JSON.parse(readFileSync(join(home.dir, 'out.json'), 'utf8'))).toEqual(json.json());
  });

  it('exports those that match all filters', async () => {
    const name = await addCollection('--field', 'n:Number');
    await inShop(['data', 'import', name, '-', '--format', 'ndjson'], { stdin: '{"n":1}\n{"n":2}\n{"n":3}\n' });
    const found = await exported(name, '--filter', 'n_gte=2', '--filter', 'n_ne=3');
    expect(found.map(({ n }) => n)).toEqual([2]);
    const refused = await inShop(['data', 'export', name, '--filter', 'limit=1']);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect((await inShop(['data', 'export', name, '--filter', 'nothing=1'])).stderr).toContain(
      'Unknown field "nothing"',
    );
  });

  it('exports an empty collection as a valid file', async () => {
    const name = await addCollection('--flexible');
    expect((await inShop(['data', 'export', name])).stdout).toBe('');
    expect((await inShop(['data', 'export', name, '--json'])).json()).toEqual([]);
    expect((await inShop(['data', 'export', name, '--format', 'csv'])).stdout).toBe(
      '_id,createdAt,updatedAt,bsvc-csv/1\r\n',
    );
  });

  it('leaves no file, and no half of one, when it cannot finish', async () => {
    const name = await addCollection('--flexible');
    const stop = AbortSignal.abort('SIGINT');
    await inShop(['data', 'import', name, '-', '--format', 'ndjson'], { stdin: '{"a":1}\n' });
    const { code } = await inShop(['data', 'export', name, '--out', 'half.ndjson'], { stop });
    expect(code).toBe(130);
    expect(readdirSync(home.dir).filter((file) => file.startsWith('half'))).toEqual([]);
    expect((await inShop(['data', 'export', name, '--out', 'no/such/dir.json'])).code).toBe(1);
    expect(existsSync(join(home.dir, 'no'))).toBe(false);
  });
});

describe('bsvc data query', () => {
  it('filters, sorts and projects like the REST API', async () => {
    const name = await addCollection('--flexible');
    await inShop(['data', 'import', name, COUNTRIES]);
    const words = ['data', 'query', name, '--filter', 'region=Oceania', '--filter', 'area_gt=20000', '--sort', '-area'];
    const page = await inShop([...words, '--limit', '2', '--fields', 'cca3', '--json']);
    expect(page.json()).toMatchObject({ items: [{ cca3: 'AUS' }, { cca3: 'PNG' }], limit: 2, page: 1 });
    const second = await inShop([...words, '--limit', '2', '--page', '2']);
    expect((JSON.parse(second.stdout.split('\n')[0]!) as { cca3: string }).cca3).toBe('NZL');
    expect((await inShop(['data', 'query', name, '--filter', 'landlocked=true', '--count'])).stdout).toBe('45\n');
    expect((await inShop([...words, '--limit', '1', '--quiet'])).stdout).toMatch(/^[0-9a-f]{24}\n$/);
  });

  it('lists the trash beside the others, and alone', async () => {
    const name = await addCollection('--flexible');
    const insert = async (title: string): Promise<string> =>
      (await inShop(['data', 'insert', name, JSON.stringify({ title }), '--quiet'])).stdout.trim();
    const [kept, trashed] = [await insert('kept'), await insert('trashed')];
    await inShop(['data', 'delete', name, trashed]);
    const list = async (...words: string[]): Promise<string[]> =>
      (await inShop(['data', 'query', name, '--sort', '_id', '--quiet', ...words])).stdout.trim().split('\n');
    expect(await list()).toEqual([kept]);
    expect(await list('--include-deleted')).toEqual([kept, trashed]);
    expect(await list('--only-deleted')).toEqual([trashed]);
  });

  it('explains by which index a page is read, and past how many documents', async () => {
    const name = await addCollection('--flexible', '--index', 'region');
    await inShop(['data', 'import', name, COUNTRIES]);
    const explain = ['data', 'query', name, '--limit', '5', '--explain'];
    const byIndex = await inShop([...explain, '--filter', 'region=Oceania', '--json']);
    expect(byIndex.json()).toMatchObject({ indexes: [expect.stringContaining('region')], examined: 5, returned: 5 });
    const scan = await inShop([...explain, '--filter', 'cca3=ZWE', '--sort', 'area']);
    expect(scan.stdout).toBe(
      'no index: every document is read\nsorted after reading\n250 documents examined for 1 of the page\n',
    );
    const pipeline = '[{"$match":{"region":"Oceania"}},{"$group":{"_id":"$subregion"}}]';
    const piped = await inShop(['data', 'query', name, '--pipeline', pipeline, '--explain']);
    expect(piped.stdout).toMatch(/^by \w+region\n27 documents examined for 27 for the stages behind\n$/);
    const groups = await inShop([
      'data',
      'query',
      name,
      '--pipeline',
      '[{"$group":{"_id":"$region"}}]',
      '--explain',
      '--json',
    ]);
    expect(groups.json()).toMatchObject({ indexes: [expect.stringContaining('region')], returned: 6 });
  });

  it.each([
    [['--filter', 'status'], 2, 'field=value'],
    [['--filter', 'limit=3'], 2, 'there is --limit'],
    [['--filter', 'skip=3'], 2, 'skip=… is no condition.'],
    [['--filter', 'meta=false'], 2, 'meta=… is no condition.'],
    [['--filter', '$where=1'], 1, '$where'],
    [['--limit', '0'], 1, 'limit'],
  ])('refuses %j', async (words, code, text) => {
    const name = await addCollection('--flexible');
    const outcome = await inShop(['data', 'query', name, ...words]);
    expect({ code: outcome.code, stdout: outcome.stdout }).toEqual({ code, stdout: '' });
    expect(outcome.stderr).toContain(text);
  });

  it('does not show users', async () => {
    expect((await inShop(['data', 'query', 'users'])).code).toBe(1);
  });
});

describe('bsvc data query --watch', () => {
  const linesOf = (stdout: string): Record<string, unknown>[] =>
    stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it('tells what is there, and what became of it since the cursor that it has noted', async () => {
    const name = await addCollection('--flexible');
    const insert = async (document: object): Promise<string> =>
      (await inShop(['data', 'insert', name, JSON.stringify(document), '--quiet'])).stdout.trim();
    const open = await insert({ state: 'open', n: 1 });
    await insert({ state: 'done' });
    const file = join(home.dir, `${name}.cursor`);
    const watch = (...words: string[]) =>
      inShop(['data', 'query', name, '--watch', '--filter', 'state=open', '--once', '--cursor-file', file, ...words]);
    expect(linesOf((await watch('--fields', 'n')).stdout)).toMatchObject([
      { type: 'upsert', id: open, document: { _id: open, n: 1 } },
    ]);
    expect((await watch()).stdout).toBe('');
    const added = await insert({ state: 'open' });
    await inShop(['data', 'delete', name, open]);
    expect(linesOf((await watch()).stdout)).toMatchObject([
      { type: 'upsert', id: added },
      { type: 'gone', id: open },
    ]);
  });

  it('goes on until it is stopped', async () => {
    const name = await addCollection('--flexible');
    const stop = new AbortController();
    const watching = inShop(['data', 'query', name, '--watch', '--since', 'now'], { stop: stop.signal });
    setImmediate(() => stop.abort('SIGINT'));
    expect((await watching).stdout).toBe('');
  });

  it('starts over when its cursor has expired, and says so', async () => {
    const name = await addCollection('--flexible');
    const file = join(home.dir, `${name}.cursor`);
    const watch = () => inShop(['data', 'query', name, '--watch', '--once', '--cursor-file', file]);
    await watch();
    await inShop(['collection', 'edit', name, '--changes', 'off']);
    const { code, stderr } = await watch();
    expect(code).toBe(1);
    expect(stderr).toContain('bsvc collection edit');
    const kept = await inShop(['collection', 'edit', name, '--changes', '7d']);
    expect(kept.stdout).toBe(`${name}: changes on, kept for 7d.\n`);
    expect(linesOf((await watch()).stdout)).toEqual([{ type: 'reset' }]);
  });

  it('refuses a cursor that is none, and one beside a file', async () => {
    const name = await addCollection('--flexible');
    const forged = await inShop(['data', 'query', name, '--watch', '--once', '--since', 'x.y']);
    expect({ code: forged.code, stdout: forged.stdout }).toEqual({ code: 1, stdout: '' });
    const file = join(home.dir, `${name}.cursor`);
    writeFileSync(file, 'x.y\n');
    const both = await inShop(['data', 'query', name, '--watch', '--since', 'now', '--cursor-file', file]);
    expect(both.code).toBe(2);
  });
});

describe('bsvc data query --pipeline', () => {
  it('runs a pipeline from an argument or standard input, over what is not in the trash', async () => {
    const name = await addCollection('--flexible');
    await inShop(['data', 'import', name, COUNTRIES]);
    const pipeline = JSON.stringify([
      { $match: { region: { $in: ['Oceania', 'Antarctic'] } } },
      { $group: { _id: '$region', n: { $sum: 1 } } },
      { $sort: { _id: 1 } },
    ]);
    const results = [
      { _id: 'Antarctic', n: 5 },
      { _id: 'Oceania', n: 27 },
    ];
    expect((await inShop(['data', 'query', name, '--pipeline', pipeline, '--json'])).json()).toEqual({
      items: results,
      untrusted: true,
    });
    const { stdout } = await inShop(['data', 'query', name, '--pipeline', '-'], { stdin: pipeline });
    expect(stdout).toBe(results.map((each) => `${JSON.stringify(each)}\n`).join(''));
    expect((await inShop(['data', 'query', name, '--pipeline', '[{"$out":"x"}]'])).stderr).toContain('$out');
    expect((await inShop(['data', 'query', name, '--pipeline', '[{'])).stderr).toContain('The pipeline is not JSON');
  });
});

describe('an interrupted import', () => {
  it('ends with 130 after a whole batch', async () => {
    const name = await addCollection('--flexible');
    const stop = new AbortController();
    const stdin = Array.from({ length: 50 }, (_, n) => `{"n":${n}}\n`).join('');
    const running = inShop(['data', 'import', name, '-', '--format', 'ndjson', '--batch', '5'], {
      stdin,
      stop: stop.signal,
    });
    setImmediate(() => stop.abort('SIGINT'));
    expect((await running).code).toBe(130);
    expect((await exported(name)).length % 5).toBe(0);
  });
});

describe('an interrupted read', () => {
  const READS = [
    ['data', 'query'],
    ['data', 'query', '--count'],
    ['data', 'query', '--explain'],
    ['data', 'query', '665f1c2e9b1d8a0012ab34cd'],
    ['data', 'query', '--pipeline', '[{"$match":{}}]'],
    ['data', 'query', '--pipeline', '[{"$match":{}}]', '--explain'],
    ['rules', 'explain', '--as', 'anyone'],
  ];

  it.each(READS.map((words) => [words.join(' '), words] as const))(
    'ends in the database too: %s',
    async (_, [topic, verb, ...more]) => {
      const name = await addCollection('--flexible', '--public');
      await inShop(['data', 'insert', name, '{"at":1}']);
      const stop = new AbortController();
      const ended: unknown[] = [];
      const spies = [find, aggregate, countCommand, explain].map((command) => {
        const run = command.run.bind(command);
        return vi.spyOn(command, 'run').mockImplementation((call, body, as) => {
          const asked = { ...body, ...(body.explain as object) } as Record<string, unknown>;
          if (String(asked.find ?? asked.aggregate ?? asked.count).startsWith('documents_')) {
            stop.abort('SIGINT');
            ended.push(call.signal?.aborted);
          }
          return run(call, body, as);
        });
      });
      await inShop([topic!, verb!, name, ...more], { stop: stop.signal });
      for (const spy of spies) spy.mockRestore();
      expect([...new Set(ended)]).toEqual([true]);
    },
  );
});
