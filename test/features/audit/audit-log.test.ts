import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listActs, recordAct } from '../../../src/features/audit/audit-log.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';

let test: TestApp;
beforeAll(async () => {
  test = await openTestApp();
});
afterAll(() => test.close());

async function record(input: Record<string, unknown>): Promise<Record<string, unknown>> {
  await recordAct(test.app, { actor: 'ann', action: 'user create', input }, () => Promise.resolve());
  const [act] = await listActs(test.app, { limit: 1 });
  return act!.input;
}

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
    expect((kept.text as string).length).toBe(501);
    expect(kept.list).toHaveLength(50);
  });
});
