import { describe, expect, it } from 'vitest';
import { ROUTE_LISTS, type Route, type Schema } from '../../world/app.js';
import { updateProject } from '../../world/projects.js';
import { buildCollection, buildProject, placeDocuments } from '../../helpers/build-project.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { useTestApp } from '../../helpers/use.js';
import { openUserClient } from '../../helpers/user-client.js';

const TOKEN = 'operator-token-for-tests';
const MAX_JSON_BYTES = 1024 * 1024;

const clock = createFakeClock();

const test = await useTestApp({
  settings: { BSVC_ADMIN_TOKEN: TOKEN, BSVC_RATE_LIMIT: 'off', BSVC_BCRYPT_COST: '4' },
  clock,
});
const { project, publishable, secret } = await buildProject(test.app);
await updateProject(test.app, project.name, { signIn: { anonymous: true } });
const collection = await buildCollection(test.app, project);
const [id] = await placeDocuments(test.app, collection, [{ a: 1 }]);
const users = openUserClient(test, publishable);
const { accessToken } = (await users.signUp()).body as { accessToken: string };
const { user } = (await users.signUp()).body as { user: { _id: string } };
// A proof so old deletes no account and ends no sessions, so that the same user is there for every case.
clock.advance(11 * 60_000);
const { name } = collection;
/** What the parameters of paths stand for; all others name nothing that is there. */
const names: Record<string, string> = {
  projectId: project._id.toHexString(),
  collection: name,
  collectionName: name,
  id: id!,
  user: user._id,
};
const key = { 'x-api-key': secret };
const carried = {
  operator: { authorization: `Bearer ${TOKEN}` },
  user: { ...key, authorization: `Bearer ${accessToken}` },
  key,
};

/** A body beside a stated limit: `name` says which. */
interface Beside {
  name: string;
  body: unknown;
  /** It breaks the limit by one; otherwise it just meets it. */
  breaks: boolean;
}

const routes = ROUTE_LISTS.flatMap((list) => list.routes).filter(({ body, openBody }) => body ?? openBody);
const cases = routes.flatMap((route) => listBeside(route).map((beside) => ({ route, ...beside })));

describe('a body of a route', () => {
  it.each(routes.map((route) => [route.id, route] as const))(
    '%s › is refused when it is not UTF-8',
    async (_id, route) => {
      const { status, body } = await send(route, Buffer.from('{"text":"caf\xe9"}', 'latin1'));
      expect([status, (body as { code: string }).code]).toEqual([400, 'INVALID_JSON']);
    },
  );

  it.each(routes.map((route) => [route.id, route] as const))(
    '%s › may begin with a byte order mark',
    async (_id, route) => {
      const { body } = await send(route, Buffer.from('\ufeff{}'));
      expect((body as { code?: string }).code).not.toBe('INVALID_JSON');
    },
  );

  it('has limits to be tested in every group', () => {
    expect(routes.length).toBeGreaterThan(10);
    expect(cases.length).toBeGreaterThan(100);
  });

  it.each(cases.filter(({ breaks }) => breaks).map((each) => [each.route.id, each.name, each] as const))(
    '%s › is refused with the code of the document for %s',
    async (_id, _name, { route, body }) => {
      const reply = await send(route, body);
      expect(reply.status).toBe(400);
      // Where the use case checks the body, it has codes of its own.
      if (route.openBody) return;
      expect(reply.body.code).toBe('VALIDATION_FAILED');
      expect(reply.body.details!.length).toBeGreaterThan(0);
    },
  );

  it.each(cases.filter(({ breaks }) => !breaks).map((each) => [each.route.id, each.name, each] as const))(
    '%s › passes the check with %s',
    async (_id, _name, { route, body }) => {
      const reply = await send(route, body);
      // Rules that a schema cannot say are checked after it, under codes of their own.
      const { code, details = [] } = reply.body;
      expect(code === 'VALIDATION_FAILED' ? details.filter(({ rule }) => SCHEMA_RULES.has(rule)) : []).toEqual([]);
      expect(reply.status).not.toBe(500);
    },
  );
});

const SCHEMA_RULES = new Set([
  'length',
  'maxItems',
  'minItems',
  'enum',
  'minimum',
  'maximum',
  'oneLine',
  'additionalProperties',
]);

async function send(route: Route, body: unknown) {
  const path = route.path.replace(/:(\w+)/g, (_part, name: string) => names[name] ?? 'nothing');
  const reply = await fetch(test.url + path, {
    method: route.method,
    headers: { ...carriedTo(route), 'content-type': 'application/json' },
    body: body instanceof Buffer ? new Uint8Array(body) : JSON.stringify(body),
  });
  return { status: reply.status, body: (await reply.json()) as { code?: string; details?: { rule: string }[] } };
}

function carriedTo({ access: { security } }: Route): Record<string, string> {
  const needs = (name: string): boolean => security.every((way) => way.some((scheme) => scheme.name === name));
  if (security.some((way) => way.some(({ name }) => name === 'operatorToken'))) return carried.operator;
  return needs('userToken') ? carried.user : carried.key;
}

function listBeside({ body, openBody, example }: Route): Beside[] {
  return [...beside((body ?? openBody)!, example, (value) => value, 'the body')].filter(
    (each) => JSON.stringify(each.body).length < MAX_JSON_BYTES,
  );
}

type Put = (value: unknown) => unknown;

/** Walks the schema along with an example that fits it; `put` makes a whole body of another value at this place. */
function* beside(schema: Schema | false, example: unknown, put: Put, place: string): Generator<Beside> {
  const breaking = (name: string, value: unknown): Beside => ({
    name: `${place}: ${name}`,
    body: put(value),
    breaks: true,
  });
  const meeting = (name: string, value: unknown): Beside => ({
    name: `${place}: ${name}`,
    body: put(value),
    breaks: false,
  });
  if (schema === false) return yield breaking('what may never be there', 'anything');
  const limits = schema as Record<string, number | undefined>;
  const { minLength, maxLength, minBytes, maxBytes, minimum, maximum, minItems, maxItems } = limits;
  const types = [schema.type].flat();
  const hasForm = schema.pattern !== undefined || schema.format === 'email';
  if (schema.enum) yield breaking('none of its values', 'none of these');
  if (types.includes('string')) yield breaking('a number instead of a text', 1);
  if (types.includes('boolean')) yield breaking('a text instead of a boolean', 'yes');
  if (types.includes('integer')) yield breaking('a fraction', 1.5);
  if (minimum !== undefined) {
    yield breaking(`${minimum - 1}`, minimum - 1);
    yield meeting(`${minimum}`, minimum);
  }
  if (maximum !== undefined) {
    yield breaking(`${maximum + 1}`, maximum + 1);
    yield meeting(`${maximum}`, maximum);
  }
  if (minLength === 1) yield breaking('an empty text', '');
  if (hasForm) yield breaking('a text of another form', '?');
  if (schema.oneLine) yield breaking('two lines', 'x\ny');
  if (schema.notBlank) yield breaking('nothing but spaces', '  ');
  if (maxLength !== undefined) yield breaking(`${maxLength + 1} characters`, 'x'.repeat(maxLength + 1));
  if (maxLength !== undefined && !hasForm) yield meeting(`${maxLength} characters`, 'x'.repeat(maxLength));
  if (minBytes !== undefined) yield breaking(`${minBytes - 1} bytes`, 'x'.repeat(minBytes - 1));
  if (maxBytes !== undefined) {
    yield breaking(`${maxBytes + 1} bytes`, `${'é'.repeat(maxBytes / 2)}x`);
    yield meeting(`${maxBytes} bytes`, 'é'.repeat(maxBytes / 2));
  }
  if (schema.wellFormed) yield breaking('half a character', `${example as string}\ud800`);
  if (types.includes('array')) yield* besideList(schema.items as Schema, example, put, place, { minItems, maxItems });
  if (types.includes('object') && schema.properties !== undefined) yield* besideFields(schema, example, put, place);
}

function* besideList(
  items: Schema,
  example: unknown,
  put: Put,
  place: string,
  { minItems, maxItems }: { minItems?: number; maxItems?: number },
): Generator<Beside> {
  const one: unknown = Array.isArray(example) && example.length > 0 ? example[0] : sampleOf(items);
  yield { name: `${place}: a text instead of a list`, body: put('x'), breaks: true };
  if (minItems === 1) yield { name: `${place}: an empty list`, body: put([]), breaks: true };
  if (maxItems !== undefined && one !== undefined) {
    const list = (count: number): unknown => put(Array.from({ length: count }, () => one));
    yield { name: `${place}: ${maxItems + 1} items`, body: list(maxItems + 1), breaks: true };
    yield { name: `${place}: ${maxItems} items`, body: list(maxItems), breaks: false };
  }
  if (one !== undefined && items.$ref === undefined) yield* beside(items, one, (value) => put([value]), `${place}.0`);
}

function* besideFields(schema: Schema, example: unknown, put: Put, place: string): Generator<Beside> {
  const fields = (schema.properties ?? {}) as Record<string, Schema | false>;
  const required = (schema.required ?? []) as string[];
  const whole = (example ?? {}) as Record<string, unknown>;
  yield { name: `${place}: a list instead of an object`, body: put([1]), breaks: place !== 'the body' };
  if (schema.additionalProperties === false)
    yield { name: `${place}: an unknown field`, body: put({ ...whole, unheardOf: 1 }), breaks: true };
  if (schema.minProperties === 1) yield { name: `${place}: no field`, body: put({}), breaks: true };
  for (const name of required) {
    const { [name]: _left, ...rest } = whole;
    yield { name: `${place}: no ${name}`, body: put(rest), breaks: true };
  }
  for (const [name, field] of Object.entries(fields)) {
    const value = whole[name] ?? sampleOf(field);
    yield* beside(field, value, (other) => put({ ...whole, [name]: other }), name);
  }
}

/** A value that fits a simple schema; undefined where that takes an example. */
function sampleOf(schema: Schema | false): unknown {
  if (schema === false) return undefined;
  if (schema.enum) return (schema.enum as unknown[])[0];
  if (schema.format === 'email') return 'ada@example.com';
  if (schema.type === 'string') return 'x'.repeat((schema.minLength as number | undefined) ?? 1);
  if (schema.type === 'boolean') return true;
  if (schema.type === 'integer') return 1;
  return undefined;
}
