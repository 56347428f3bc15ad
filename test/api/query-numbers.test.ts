import { describe, expect, it } from 'vitest';
import { ROUTE_LISTS } from '../world/app.js';
import { setChanges } from '../world/collections.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const TOKEN = 'operator-token-for-tests';

const test = await useTestApp({ settings: { BSVC_ADMIN_TOKEN: TOKEN, BSVC_RATE_LIMIT: 'off' } });
const built = await buildProject(test.app);
const collection = await buildCollection(test.app, built.project);
const { name } = collection;
const [document] = await placeDocuments(test.app, collection, [{ title: 'x' }]);
// On a MongoDB nobody follows a collection until this is said.
await setChanges(test.app, built.project._id, name, { on: true });
const secret = built.secret;
/** What the parameters of paths stand for; all others name nothing that is there. */
const names: Record<string, string> = {
  projectId: built.project._id.toHexString(),
  collection: name,
  collectionName: name,
  document: document!,
  id: document!,
};

/** Every parameter of a query that is a number, of every route. */
const numbers = ROUTE_LISTS.flatMap(({ routes }) => routes).flatMap((route) =>
  Object.entries({ ...route.query, ...route.ownQuery })
    .filter(([, { schema }]) => schema.type === 'integer' || schema.type === 'number')
    .map(([name, { schema, cap, description }]) => ({
      route,
      name,
      description,
      min: schema.minimum as number,
      max: schema.maximum as number | undefined,
      cap,
      fallback: schema.default as number | undefined,
    })),
);
const each = numbers.map((number) => [number.route.id, number.name, number] as const);

async function ask({ route, name }: (typeof numbers)[number], value: string) {
  const path = route.path.replace(/:(\w+)/g, (_part, part: string) => names[part] ?? 'nothing');
  const operator = route.access.security.some((way) => way.some((scheme) => scheme.name === 'operatorToken'));
  const reply = await fetch(`${test.url}${path}?${name}=${encodeURIComponent(value)}`, {
    method: route.method,
    headers: {
      ...(operator ? { authorization: `Bearer ${TOKEN}` } : { 'x-api-key': secret }),
      ...(route.openBody && { 'content-type': 'application/json' }),
    },
    body: route.openBody && '{"title":"x"}',
  });
  const body = (await reply.json()) as { code?: string; message: string; data?: Record<string, unknown> };
  return { status: reply.status, body };
}

describe('a number in a query', () => {
  it('is taken by many routes', () => {
    expect(numbers.length).toBeGreaterThan(10);
  });

  it.each(each)('%s › %s: the document says from where, and what is more than the most', (_id, _name, number) => {
    const { min, max, cap, fallback, description } = number;
    expect(min).toBeGreaterThanOrEqual(0);
    if (fallback !== undefined) expect(fallback >= min && fallback <= (cap ?? max ?? Infinity)).toBe(true);
    // A page far beyond the end is empty anyway.
    if (cap !== undefined && number.name !== 'page') expect(description).toContain(`more than ${cap} counts as ${cap}`);
  });

  it.each(each)('%s › %s: out of range is 400 that names it and the bound', async (_id, name, number) => {
    const { min, max, cap } = number;
    const tooLow = [String(min - 1), '-1', '1e1', '1.5', '0x10', 'ten', '', ' '];
    const beyond = (max ?? 999_999_999_999_999) + 1;
    const refused = [...tooLow.map((text) => [text, min] as const), [String(beyond), max] as const];
    for (const [text, bound] of refused) {
      const { status, body } = await ask(number, text);
      expect({ text, status, code: body.code }).toEqual({ text, status: 400, code: 'INVALID_QUERY' });
      expect(body.message).toMatch(new RegExp(`^${name} must be a whole number .*\\b${bound ?? '\\d+'}\\b`));
      if (max !== undefined) expect(body.message).toBe(`${name} must be a whole number from ${min} to ${max}`);
    }
    if (cap === undefined) return;
    const { status, body } = await ask(number, String(cap + 1));
    expect([status, body.code]).not.toEqual([400, 'INVALID_QUERY']);
    if (status === 200 && typeof body.data?.[name] === 'number') expect(body.data[name]).toBe(cap);
  });

  it.each(each)('%s › %s: is taken at both ends', async (_id, _name, number) => {
    const { min, max = 1000 } = number;
    for (const value of [min, ...(number.name === 'wait' ? [] : [max])]) {
      const { status, body } = await ask(number, String(value));
      expect([value, body.code]).not.toEqual([value, 'INVALID_QUERY']);
      expect(status, `${value}: ${body.message}`).toBeLessThan(500);
    }
  });

  it('is never a text of digits, which nothing would bound', () => {
    const texts = ROUTE_LISTS.flatMap(({ routes }) => routes).flatMap((route) =>
      Object.entries({ ...route.query, ...route.ownQuery })
        .filter(([, { schema }]) => schema.type === 'string' && schema.pattern !== undefined)
        .filter(([, { schema }]) =>
          ['0', '1', '42'].every((text) => new RegExp(String(schema.pattern), 'u').test(text)),
        )
        .map(([name]) => `${route.id} ${name}`),
    );
    expect(texts).toEqual([]);
  });
});
