import { describe, expect, it } from 'vitest';
import { listActs, withAuditEntry } from '../../../src/features/audit/audit-log.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();

async function record(input: Record<string, unknown>): Promise<Record<string, unknown>> {
  await withAuditEntry(test.app, { actor: 'ann', action: 'user create', input }, () => Promise.resolve());
  const [act] = await listActs(test.app, { limit: 1 });
  return act!.input;
}

const numbered = (count: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]));

describe('what an act was told', () => {
  it.each([['hunter2'], [4711], [['hunter2']], [{ is: 'hunter2' }], [{ $ne: 'hunter2' }]])(
    'holds a password sent as %j in no form, at no depth',
    async (password) => {
      const masked = '********';
      expect(await record({ email: 'a@b.co', password, profile: { api_key: password } })).toEqual({
        email: 'a@b.co',
        password: masked,
        profile: { api_key: masked },
      });
    },
  );

  it('tells that a secret was taken away or switched', async () => {
    const input = { providerApiKey: null, secretsShown: false };
    expect(await record(input)).toEqual(input);
  });

  it('is small and safe to store', async () => {
    const hostile = { text: 'x'.repeat(10_000), list: Array(1000).fill(1), 'a.b$c': 1, $where: 1, _bsontype: 'Code' };
    const kept = await record({ ...hostile, ['__proto__']: { polluted: true } });
    expect(Object.keys(kept)).toEqual(['text', 'list', 'a_b$c', '_where', '_']);
    expect((kept.text as string).length).toBeLessThan(600);
    expect(kept.list).toHaveLength(51);
  });

  const cut: [what: string, input: (last: string) => Record<string, unknown>, told: RegExp][] = [
    ['a list', (last) => ({ x: [...Array<string>(60).fill('harmless'), last] }), /… 11 more \(sha256 [0-9a-f]{64}\)/],
    ['an object', (last) => ({ x: { ...numbered(60), last } }), /… 11 more \(sha256 [0-9a-f]{64}\)/],
    ['a text', (last) => ({ x: 'a'.repeat(1000) + last }), /… \d+ more \(sha256 [0-9a-f]{64}\)/],
    ['too many values', (last) => ({ x: Array(20).fill(Array(40).fill(1)), y: [last] }), /… 1 more \(sha256/],
    ['too many levels', (last) => ({ a: { b: { c: { d: { e: { f: [last] } } } } } }), /… 1 more \(sha256/],
  ];
  it.each(cut)('says how much of %s is cut, and other cuts differ', async (_what, input, told) => {
    const [evil, other] = [
      JSON.stringify(await record(input('evil.test'))),
      JSON.stringify(await record(input('b.test'))),
    ];
    expect(evil).toMatch(told);
    expect(evil).not.toContain('evil.test');
    expect(other).not.toBe(evil);
  });

  it('tells nothing of a secret that is cut', async () => {
    const input = (password: string) => ({ x: { ...numbered(60), password } });
    expect(await record(input('hunter2'))).toEqual(await record(input('other')));
  });
});
