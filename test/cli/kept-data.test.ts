import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { KEPT_DATA } from '../../cli/doctor/kept-data.js';
import { openCliHome } from '../helpers/run-cli.js';
import { withApp } from '../helpers/with-app.js';

const home = openCliHome();
const env = { BSVC_DATA_DIR: join(home.dir, 'data'), BSVC_DURABILITY: 'relaxed' };
afterAll(() => {
  home.remove();
});

it('lists every store whose records have an end', async () => {
  await home.bsvc(['project', 'create', 'shop'], { env });
  const ending = await withApp(env, async ({ db }) => {
    const names = await db.listNames();
    const indexes = await Promise.all(names.map((name) => db.collection(name).indexes()));
    const ends = indexes.map((each) =>
      each.some(({ key, expireAfterSeconds }) => /expire/.test(Object.keys(key).join()) || expireAfterSeconds),
    );
    return names.filter((_name, at) => ends[at]);
  });
  expect(ending.length).toBeGreaterThan(10);
  const listed = KEPT_DATA.flatMap(({ stores }) => stores);
  expect(ending.filter((name) => !listed.includes(name))).toEqual([]);
});

it('is measured by doctor', async () => {
  const { code, json } = await home.bsvc(['doctor', '--json'], { env });
  expect(code).toBe(0);
  const kept = json<{ checks: { name: string; detail: string }[] }>().checks.find(({ name }) => name === 'kept');
  expect(kept!.detail).toMatch(/audit log \d+(\.\d+)? ?\w+ \(\d+ records?\)/);
});
