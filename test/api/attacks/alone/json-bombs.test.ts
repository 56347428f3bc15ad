import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { buildCollection } from '../../../helpers/build-project.js';
import { use } from '../../../helpers/use.js';
import { fill, ROUTE_TABLE } from '../routes-table.js';
import { asSecret, buildEstate, fire, openStage, outcomeOf, passFor } from '../stage.js';

const MIB = 1024 * 1024;
/**
 * Of processor time, which does not depend on what else the machine does: far beyond what any of these bodies needs,
 * far below what an expensive one would.
 */
const MAX_MICROSECONDS = 5_000_000;

const stage = use(await openStage());
const estate = await buildEstate(stage);
const call = asSecret(stage, estate);
const fields = [{ name: 'title', type: 'String' } as const, { name: 'free', type: 'Object' } as const];
await buildCollection(stage.app, estate.project, { name: 'enforced', fields });

const times = (count: number, make: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => make(at)).join(',');

/** Bodies of at most a megabyte that are worth much more to a careless reader. */
const BOMBS: Record<string, () => string> = {
  'half a million levels of arrays': () => `${'['.repeat(MIB / 2 - 10)}${']'.repeat(MIB / 2 - 10)}`,
  'half a million levels, never closed': () => '['.repeat(MIB / 2),
  'a hundred thousand levels of objects': () => `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`,
  'three hundred thousand empty arrays': () => `{"a":[${times(300_000, () => '[]')}]}`,
  'half a million numbers': () => `{"a":[${times(500_000, () => '1')}]}`,
  'ninety thousand keys': () => `{${times(90_000, (at) => `"k${at}":1`)}}`,
  'ninety thousand keys below a field': () => `{"free":{${times(90_000, (at) => `"k${at}":1`)}}}`,
  'one key eighty thousand times': () => `{${times(80_000, () => '"title":"a"')}}`,
  'eighty thousand operators': () => `{${times(80_000, (at) => `"$k${at}":1`)}}`,
  'seventy thousand dotted keys': () => `{${times(70_000, (at) => `"a.k${at}":1`)}}`,
  'a key of a megabyte': () => `{"${'k'.repeat(MIB - 20)}":1}`,
  'a text of a megabyte': () => `{"title":"${'a'.repeat(MIB - 20)}"}`,
  'a megabyte of escapes': () => `{"title":"${'\\u0041'.repeat(170_000)}"}`,
  'a megabyte of half surrogates': () => `{"title":"${'\\ud800'.repeat(170_000)}"}`,
  'a megabyte of spaces': () => ' '.repeat(MIB - 1),
  'a number of a megabyte': () => `{"title":${'9'.repeat(MIB - 20)}}`,
  'a fraction of a megabyte': () => `{"title":0.${'3'.repeat(MIB - 20)}}`,
  'an exponent of a megabyte': () => `{"title":1e${'9'.repeat(MIB - 20)}}`,
  'a condition of four hundred thousand values': () =>
    `{"pipeline":[{"$match":{"a":{"$in":[${times(400_000, () => '1')}]}}}]}`,
  'eighty thousand stages': () => `{"pipeline":[${times(80_000, () => '{"$skip":1}')}]}`,
  'a condition of thirty levels, each with many branches': () => `{"pipeline":[{"$match":${nest(9, 4)}}]}`,
  'ninety thousand recipients': () => `{"to":[${times(90_000, () => '"a@b.co"')}],"subject":"s","text":"t"}`,
  'a mail of placeholders': () =>
    `{"to":"a@b.co","subject":"s","text":"${'{{a}}'.repeat(90_000)}","variables":{"a":"${'b'.repeat(400_000)}"}}`,
  'a mail of open braces': () => `{"to":"a@b.co","subject":"s","text":"${'{{'.repeat(200_000)}"}`,
  'a mail of line breaks and braces': () => `{"to":"a@b.co","subject":"s","text":"${'\\n {{! }}'.repeat(60_000)}"}`,
  'an address of a megabyte': () =>
    `{"to":"${'a.'.repeat(500_000)}@b.co","subject":"s","text":"t","email":"${'a'.repeat(1000)}"}`,
  'a batch of ninety thousand mails': () => `[${times(90_000, () => '{}')}]`,
  'twenty thousand fields': () =>
    `{"name":"x","fields":[${times(20_000, (at) => `{"name":"f${at}","type":"String"}`)}]}`,
};

function nest(levels: number, branches: number): string {
  if (levels === 0) return '{"a":1}';
  const inner = nest(levels - 1, levels > 5 ? 1 : branches);
  return `{"$or":[${Array.from({ length: levels > 5 ? 1 : branches }, () => inner).join(',')}]}`;
}

const KINDS = new Set([
  'POST /api/data/:collectionName',
  'PATCH /api/data/:collectionName/:document',
  'POST /api/data/:collectionName/bulk',
  'POST /api/data/:collectionName/aggregate',
  'POST /api/userAuth/signup',
  'POST /api/mail/send',
  'POST /api/mail/send-batch',
  'PATCH /api/projects/:projectId',
]);

describe('a body that costs more than it seems', () => {
  const all = ROUTE_TABLE.filter(({ body, spends }) => typeof body === 'object' && !spends);
  /** One of each way in which bodies are read; a longer run (BSVC_TEST_FUZZ) asks all routes. */
  const readers = process.env.BSVC_TEST_FUZZ ? all : all.filter(({ method, path }) => KINDS.has(`${method} ${path}`));

  it('goes to every kind of reader', () => {
    expect(readers.length).toBeGreaterThanOrEqual(KINDS.size);
  });

  it.each(Object.keys(BOMBS))('(%s) costs little, whatever reads it, and others are served', async (name) => {
    const bomb = BOMBS[name]!();
    expect(bomb.length).toBeLessThanOrEqual(MIB);
    for (const row of readers) {
      const before = process.cpuUsage();
      const path = fill(row.path, estate.names);
      const answer = await fire(stage, { method: row.method, path, headers: passFor(row.pass, estate), body: bomb });
      expect({ path, status: answer.status, code: answer.code }).toMatchObject({
        status: expect.toSatisfy((status: number) => status < 500) as number,
      });
      const { user, system } = process.cpuUsage(before);
      expect(user + system, path).toBeLessThan(MAX_MICROSECONDS);
      // A refusal names what is wrong in a few words, however large it was.
      if (answer.status >= 400) expect({ path, short: answer.text.length < 20_000 }).toEqual({ path, short: true });
    }
    expect((await fire(stage, { method: 'GET', path: '/api/health' })).status).toBe(200);
  });
});

/** The limit to the byte, and packed bodies. */
describe('the limit of a megabyte', () => {
  const json = (bytes: number): string => `{"title":"${'a'.repeat(bytes - 12)}"}`;

  it.each([
    ['exactly a megabyte', MIB, '201'],
    ['a byte more', MIB + 1, '413 BODY_TOO_LARGE'],
    ['ten megabytes', 10 * MIB, '413 BODY_TOO_LARGE'],
  ])('for %s is %i bytes: %s', async (_what, bytes, outcome) => {
    expect(outcomeOf(await call('POST', '/api/data/enforced', json(bytes)))).toBe(outcome);
    const chunked = await call('POST', '/api/data/enforced', json(bytes), {
      'transfer-encoding': 'chunked',
      'content-length': [],
    });
    expect(outcomeOf(chunked)).toBe(outcome);
  });

  const packers = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync } as const;
  const packed = Object.entries(packers).flatMap(([encoding, pack]) =>
    (
      [
        ['a small document', () => pack(json(100)), /^(201|400 INVALID_JSON)$/],
        ['a megabyte and a byte', () => pack(json(MIB + 1)), /^(413 BODY_TOO_LARGE|400 INVALID_JSON)$/],
        ['a hundred megabytes', () => pack(Buffer.alloc(100 * MIB, 'a')), /^(413 BODY_TOO_LARGE|400 INVALID_JSON)$/],
        [
          'a hundred megabytes of arrays',
          () => pack(Buffer.alloc(100 * MIB, '[')),
          /^(413 BODY_TOO_LARGE|400 INVALID_JSON)$/,
        ],
        ['a document cut short', () => pack(json(1000)).subarray(0, -8), /^400 INVALID_JSON$/],
        [
          'a document with noise behind it',
          () => Buffer.concat([pack(json(100)), Buffer.from('noise')]),
          /^(201|400 INVALID_JSON)$/,
        ],
        ['itself, packed twice', () => pack(pack(json(100))), /^400 INVALID_JSON$/],
      ] as const
    ).map(([what, body, outcome]) => [encoding, what, body, outcome] as const),
  );
  it.each(packed)('holds for what %s unpacks to: %s', async (encoding, _what, body, outcome) => {
    const answer = await call('POST', '/api/data/enforced', body(), { 'content-encoding': encoding });
    expect(outcomeOf(answer)).toMatch(outcome);
  });

  it.each(['gzip, gzip', 'gzip, identity', 'x-gzip', 'compress', 'GZIP', '*', 'a'.repeat(1000)])(
    'holds for the encoding %s',
    async (encoding) => {
      const answer = await call('POST', '/api/data/enforced', gzipSync(Buffer.alloc(20 * MIB, 'a')), {
        'content-encoding': encoding,
      });
      expect([400, 413]).toContain(answer.status);
    },
  );

  it.each(['utf-16', 'utf-7', 'latin1', 'base64', 'hex', 'nonsense', '__proto__'])(
    'and the character set %s is read as no other text',
    async (charset) => {
      const answer = await call('POST', '/api/data/enforced', '{"title":"ä"}', {
        'content-type': `application/json; charset=${charset}`,
      });
      expect([201, 400]).toContain(answer.status);
    },
  );
});

/** Where JSON says one thing and JavaScript, or the database, might keep another. */
describe('a value that could silently become another', () => {
  const values: readonly [what: string, json: string, kept: unknown][] = [
    ['minus zero', '-0', 0],
    ['the largest number', '1.7976931348623157e308', 1.7976931348623157e308],
    ['the smallest', '5e-324', 5e-324],
    ['a number below the smallest', '1e-400', 0],
    ['a number beyond the largest', '1e400', '400 INVALID_BODY'],
    ['the same, negative', '-1e400', '400 INVALID_BODY'],
    ['a text with NUL', '"a\\u0000b"', 'a\u0000b'],
    ['a text with half a surrogate pair', '"a\\ud83d"', '400 INVALID_BODY'],
    ['a text with a whole one', '"\\ud83d\\ude00"', '😀'],
    ['a mark of byte order', '"\\ufeff"', '\ufeff'],
    ['NaN', 'NaN', '400 INVALID_JSON'],
    ['Infinity', 'Infinity', '400 INVALID_JSON'],
    ['undefined', 'undefined', '400 INVALID_JSON'],
    ['a hexadecimal number', '0x10', '400 INVALID_JSON'],
    ['a leading zero', '010', '400 INVALID_JSON'],
    ['a trailing comma', '[1,]', '400 INVALID_JSON'],
    ['a comment', '1/**/', '400 INVALID_JSON'],
    ['a key twice', '{"a":1,"a":2}', { a: 2 }],
  ];
  it.each(values)('(%s) is kept as it is, or refused', async (_what, json, kept) => {
    const answer = await call('POST', `/api/data/${estate.names.collectionName}`, `{"value":${json}}`);
    if (typeof kept === 'string' && kept.startsWith('400 ')) return expect(outcomeOf(answer)).toBe(kept);
    expect(answer.status).toBe(201);
    const { _id } = JSON.parse(answer.text) as { _id: string };
    const read = await call('GET', `/api/data/${estate.names.collectionName}/${_id}`);
    expect((JSON.parse(read.text) as { value: unknown }).value).toEqual(kept);
  });
});
