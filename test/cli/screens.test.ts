import { describe, expect, it } from 'vitest';
import { Chalk } from 'chalk';
import { drawTable } from '../../cli/view/table.js';
import { presentProgress } from '../../cli/view/output.js';
import { openCliHome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const env = {
  BSVC_PROJECT: 'shop',
  BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
  NO_COLOR: '1',
  PW: 'long enough',
  BSVC_BCRYPT_COST: '4',
};

const bsvc = async (...argv: string[]) => expect((await home.bsvc(argv, { env })).code).toBe(0);
await bsvc('project', 'create', 'shop');
await bsvc('collection', 'add', 'posts', '--field', 'title:String!', '--rls', 'private');
await bsvc('collection', 'add', 'events', '--flexible');
const password = ['--password-env', 'PW'];
await bsvc('user', 'create', '--email', 'a.rather.long.address@mail.example.com', ...password);
await bsvc('key', 'rotate', '--type', 'secret', '--grace', '1h');
await bsvc(
  'webhook',
  'add',
  '--url',
  'http://127.0.0.1:9/a/rather/long/address',
  '--events',
  'posts.insert,posts.update',
);

/** Of the same length whatever the run: ids, moments and endings of keys. */
const steady = (screen: string): string =>
  screen
    .replace(/\b[0-9a-f]{24}\b/g, 'f'.repeat(24))
    .replace(/\d{4}-\d\d-\d\d( [\d:]+Z?)?/g, (moment) =>
      moment.length === 17 ? '2026-11-22 12:00Z' : '2026-11-22 12:00:00Z'.slice(0, moment.length),
    )
    .replace(/((?:publishable|secret) +)[\w-]{4}\b/g, '$1abcd');

const LISTS = ['project list', 'collection list', 'key list', 'user list', 'webhook list', 'mail template list'];

describe.each([60, 80, 120])('a screen of %i columns', (columns) => {
  it.each(LISTS)('shows "bsvc %s" in lines that fit', async (words) => {
    const { stdout } = await home.bsvc(words.split(' '), { terminal: true, columns, env });
    expect(stdout.split('\n').filter((line) => line.length > columns)).toEqual([]);
    expect(steady(stdout)).toMatchSnapshot();
  });

  it('shows what bsvc doctor found in lines that fit', async () => {
    const { stdout } = await home.bsvc(['doctor'], { terminal: true, columns, env });
    expect(stdout.split('\n').filter((line) => line.length > columns)).toEqual([]);
    expect(stdout).toMatch(/^ok {3}clock {11}\d{4}-/m);
  });
});

describe('a table that does not fit', () => {
  it('shows moments to the minute, and whole', () => {
    const rows = [['2026-11-22 12:00:00Z', 'ann@example.com', 'collection edit', 'a rather long change']];
    const draw = (columns: number) =>
      drawTable(['at', 'who', 'what', 'with'], rows, columns, new Chalk({ level: 0 })).split('\n')[1];
    expect(draw(80)).toBe('2026-11-22 12:00:00Z  ann@example.com  collection edit  a rather long change');
    expect(draw(70)).toBe('2026-11-22 12:00Z  ann@example.com  collection edit  a rather long ch…');
    expect(draw(60)).toBe('2026-11-22 12:00Z  ann@example…  collection…   a rather lon…');
  });

  it('shortens cells, keeps ids whole, leaves the last columns out and names them', () => {
    const id = '6'.padEnd(24, 'a');
    const rows = [[id, 'a rather long name of something', 'enforced', '2026-11-22 12:00:00Z']];
    const lines = drawTable(['id', 'name', 'mode', 'created'], rows, 60, new Chalk({ level: 0 })).split('\n');
    expect(lines[1]).toBe(`${id}  a rather long name of s…  enforced`);
    expect(lines.at(-1)).toBe('Not shown: created');
  });
});

describe('a table on a wide screen', () => {
  const word = 'rather-a-long-word,with/no.space'.repeat(2);
  const rows = [['2026-11-22 12:00:00Z', 'ann@a.rather.long.host', 'collection edit', `of=posts ${word}`]];
  const draw = (columns: number) => drawTable(['at', 'who', 'what', 'with'], rows, columns, new Chalk({ level: 0 }));

  it('continues cells below themselves, between words', () => {
    const text = draw(132);
    expect(text.split('\n').filter((line) => line.length > 132)).toEqual([]);
    for (const cell of rows[0]!) for (const each of cell.split(' ')) expect(text).toContain(each);
  });

  it('breaks words where it has no room for them, and fits', () => {
    const text = draw(102);
    expect(text.split('\n').filter((line) => line.length > 102)).toEqual([]);
    expect(text).not.toContain(word);
  });

  it('keeps ids whole', () => {
    const delivery = 'evt_6b047e1889a059c838fb9ccd.6b047e179d8d3ed63c51e4db';
    const row = [delivery, 'products.insert', 'failed', '3', 'The connection failed.', '2026-11-22 12:00:00Z'];
    const head = ['id', 'event', 'state', 'attempts', 'last answer', 'created'];
    for (const columns of [100, 140]) {
      const lines = drawTable(head, [row], columns, new Chalk({ level: 0 })).split('\n');
      expect(lines[1]).toMatch(new RegExp(`^${delivery}  `));
      expect(lines.filter((line) => line.length > columns)).toEqual([]);
    }
  });
});

describe('a progress bar', () => {
  it.each([
    [0, 0, '░░░░░░░░░░░░░░░░░░░░   0 %'],
    [0.25, 10_000, '█████░░░░░░░░░░░░░░░  25 %, 30 s left'],
    [0.5, 300_000, '██████████░░░░░░░░░░  50 %, 5 min left'],
    [1, 5000, '████████████████████ 100 %, 0 s left'],
  ])('draws %d after %d ms', (share, elapsed, drawn) => {
    expect(presentProgress(share, elapsed)).toBe(drawn);
  });
});
