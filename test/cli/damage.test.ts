import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loseFreePages } from '../../src/engine/test/page-map.js';
import { openCliHome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const file = join(home.dir, 'data', 'bsvc.mdb');

await home.bsvc(['project', 'create', 'shop']);
await home.bsvc([
  ...['collection', 'add', 'posts', '--project', 'shop'],
  ...['--field', 'title:String!', '--field', 'tag:String!&'],
]);
const stdin = Array.from(
  { length: 300 },
  (_, n) => `{"title":"title number ${n} of all","tag":"tag-${1000 + n}-end"}\n`,
).join('');
await home.bsvc(['data', 'import', 'posts', '-', '--format', 'ndjson', '--project', 'shop'], { stdin });

/** Changes every copy of the text in the data file by one bit, those in pages that hold nothing included. */
function damage(text: string): void {
  const bytes = readFileSync(file);
  const opened = openSync(file, 'r+');
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) {
    writeSync(opened, Buffer.from([bytes[at]! ^ 0x20]), 0, 1, at);
  }
  closeSync(opened);
}

interface Findings {
  checks: { name: string; ok: boolean; detail: string }[];
}
const checkOf = (json: Findings, check: string) => json.checks.find(({ name }) => name === check);
const contentOf = (json: Findings) => checkOf(json, 'content');

describe('a store of which LMDB has lost free pages', () => {
  it('is whole, and so is its backup: doctor --deep says how many they are, and that the backup has none', async () => {
    // What is removed leaves free pages behind.
    await home.bsvc(['collection', 'add', 'gone', '--project', 'shop', '--flexible']);
    const stdin = `${JSON.stringify({ text: 'x'.repeat(500) })}\n`.repeat(500);
    await home.bsvc(['data', 'import', 'gone', '-', '--format', 'ndjson', '--project', 'shop'], { stdin });
    await home.bsvc(['collection', 'remove', 'gone', '--project', 'shop', '--yes']);
    loseFreePages(join(home.dir, 'data'), 3);
    const look = async (dataDir: string): Promise<unknown> => {
      const { code, json } = await home.bsvc(['doctor', '--deep', '--json', '--data-dir', dataDir]);
      return [code, contentOf(json())];
    };
    const whole = 'every page, document, index entry and count is as it was stored';
    const noted = `${whole}; 3 pages of the file can no longer be used, which is harmless: a restored backup has none`;
    expect(await look('data')).toMatchObject([0, { ok: true, detail: noted }]);
    expect((await home.bsvc(['backup', '--out', 'leaky.backup'])).code).toBe(0);
    expect((await home.bsvc(['restore', 'leaky.backup', '--data-dir', 'restored'])).code).toBe(0);
    expect(await look('restored')).toMatchObject([0, { ok: true, detail: whole }]);
    const stored = await home.bsvc([
      ...['data', 'export', 'posts', '--project', 'shop', '--format', 'ndjson', '--data-dir', 'restored'],
    ]);
    expect(stored.stdout.trim().split('\n')).toHaveLength(300);
  });
});

describe('a damaged store', () => {
  it('is found whole by doctor --deep before', async () => {
    const found = await home.bsvc(['doctor', '--deep', '--json']);
    expect(found.code).toBe(0);
    expect(contentOf(found.json())).toMatchObject({ ok: true });
    const { json } = await home.bsvc(['doctor', '--json']);
    expect([contentOf(json()), checkOf(json(), 'damage')]).toEqual([undefined, undefined]);
    expect((await home.bsvc(['backup', '--out', 'whole.backup'])).code).toBe(0);
  });

  it('is told by every command that reads what is damaged, with collection and id', async () => {
    damage('title number 123 of all');
    const read = await home.bsvc(['data', 'export', 'posts', '--project', 'shop', '--json']);
    expect(read.code).toBe(1);
    expect(read.stderr).toMatch(/the document [0-9a-f]{24} is damaged.*bsvc doctor --deep/);
  });

  it('is remembered: doctor without --deep names what a command has met, exit 1', async () => {
    const { code, json } = await home.bsvc(['doctor', '--json']);
    expect(code).toBe(1);
    const met = checkOf(json(), 'damage');
    expect(met).toMatchObject({ ok: false });
    expect(met!.detail).toMatch(/^met \S+: .*the document [0-9a-f]{24} is damaged/m);
  });

  it('is named by doctor --deep, exit 1', async () => {
    const { code, json } = await home.bsvc(['doctor', '--deep', '--json']);
    expect(code).toBe(1);
    const content = contentOf(json());
    expect(content).toMatchObject({ ok: false });
    expect(content!.detail).toMatch(/the document [0-9a-f]{24} is damaged\./);
  });

  it('is not written into a backup', async () => {
    const { code, stderr } = await home.bsvc(['backup', '--out', 'damaged.backup']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/The store is damaged, so it was not copied: .*the document [0-9a-f]{24} is damaged/);
    expect(existsSync(join(home.dir, 'damaged.backup'))).toBe(false);
  });

  it('has its pages named by doctor --deep when they are out of order', async () => {
    damage('tag-1200-end');
    const { code, json } = await home.bsvc(['doctor', '--deep', '--json']);
    expect(code).toBe(1);
    expect(contentOf(json())!.detail).toMatch(/Page \d+ of .* is damaged: its keys are out of order/);
  });
});
