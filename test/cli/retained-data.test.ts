import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { RETAINED_DATA } from '../world/cli.js';
import { openCliHome } from '../helpers/run-cli.js';
import { withApp } from '../helpers/with-app.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const env = { BSVC_DATA_DIR: join(home.dir, 'data'), BSVC_DURABILITY: 'relaxed' };

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
  const listed = RETAINED_DATA.flatMap(({ stores }) => stores);
  expect(ending.filter((name) => !listed.includes(name))).toEqual([]);
});

/** What people make and set, and what says how the store is: as long as the project, the account or the store. */
const LASTING = [
  ...['clock_watch', 'collections', 'files', 'mail_pace', 'mail_templates', 'mail_usage', 'migrations'],
  ...['moves', 'operators', 'passkeys', 'project_webhooks', 'projects', 'restores', 'schedules', 'encryption_keys'],
  ...['social_identities', 'social_providers', 'storage_usage'],
];
const SRC = join(import.meta.dirname, '..', '..', 'src');
/** The engine, clients and the console know no store of the service; migrations also name those that are no more. */
const WITHOUT_STORES = /^(engine|client|console|migrations)\//;

it('lists every store that the source names, or the store lasts', () => {
  const texts = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !WITHOUT_STORES.test(name))
    .map((name) => readFileSync(join(SRC, name), 'utf8'));
  const values = new Map<string, string[]>();
  for (const text of texts) {
    for (const [, name, value] of text.matchAll(/\bconst ([A-Z_]+) = '([a-z_]+)';/g)) {
      values.set(name!, [...(values.get(name!) ?? []), value!]);
    }
  }
  const named = new Set<string>();
  for (const text of texts) {
    for (const [, literal, constant] of text.matchAll(
      /(?:\bstoreOf|\.collection|\.createIndexes)(?:<(?:[^()]|\([^()]*\))*?>)?\(\s*(?:'([a-z_]+)'|([A-Z_]{4,})\b)/g,
    )) {
      const found = literal === undefined ? values.get(constant!) : [literal];
      if (found === undefined) throw new Error(`the store ${constant!} is named by no text`);
      for (const name of found) named.add(name);
    }
  }
  const known = [...RETAINED_DATA.flatMap(({ stores }) => stores), ...LASTING];
  expect([...named].filter((name) => !known.includes(name)).sort()).toEqual([]);
  expect(known.filter((name) => !named.has(name)).sort()).toEqual([]);
});

it('is measured by doctor', async () => {
  const { code, json } = await home.bsvc(['doctor', '--json'], { env });
  expect(code).toBe(0);
  const kept = json<{ checks: { name: string; detail: string }[] }>().checks.find(({ name }) => name === 'kept');
  expect(kept!.detail).toMatch(/audit log \d+(\.\d+)? ?\w+ \(\d+ records?\)/);
});
