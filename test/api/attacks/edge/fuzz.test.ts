import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ROUTE_LISTS, buildApiDocument } from '../../../world/app.js';
import { measureHeldMemory } from '../../../helpers/held-memory.js';
import { use } from '../../../helpers/use.js';
import { fillReferences, fuzzOperations, type Carried, type FuzzedRequest } from '../openapi-fuzzer.js';
import { buildEstate, fire, leaksOf, openStage, readEverything, type Answer, type Estate } from '../stage.js';

/** Requests to each operation. `BSVC_TEST_FUZZ=500 npx vitest run test/api/attacks/edge/fuzz.test.ts` looks longer. */
const RUNS = Number(process.env.BSVC_TEST_FUZZ ?? 3);
/** Printed with every failure; another one looks elsewhere. */
const SEED = Number(process.env.BSVC_TEST_FUZZ_SEED ?? 20_261_121);
/**
 * Of the process that serves and tests, however many requests there were: compiled patterns and caches that are
 * bounded, and the test's own notes.
 */
const MAX_GROWTH_BYTES = 100 * 1024 * 1024;

let own: Estate;

const stage = use(await openStage());
const victim = await buildEstate(stage);
own = await buildEstate(stage, 'pebble');
const before = await readEverything(stage, victim);
const heldBefore = measureHeldMemory();

function carry(carried: Carried): Record<string, string> {
  const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
  switch (carried) {
    case 'nothing':
      return {};
    case 'publishable':
      return { 'x-api-key': own.publishable };
    case 'secret':
      return { 'x-api-key': own.secret };
    case 'revoked':
      return { 'x-api-key': own.revoked };
    case 'user':
      return { 'x-api-key': own.publishable, ...bearer(own.user.accessToken) };
    case 'operator':
      return bearer(own.operator);
    case 'viewer':
      return bearer(own.viewer);
    case 'nonsense':
      return { 'x-api-key': `sk_live_${'a'.repeat(43)}`, ...bearer('e30.e30.e30') };
  }
}

function send({ method, path, headers, body, carried }: FuzzedRequest): Promise<Answer> {
  const names = { own: own.names, victim: victim.names };
  return fire(stage, {
    method,
    path: fillReferences(path, names),
    headers: { ...headers, ...carry(carried) },
    body: body === undefined ? undefined : fillReferences(withoutTrial(path, body), names),
  });
}

/** A bucket is not tried when it is set: without an endpoint of its own that would be a call to a real one. */
function withoutTrial(path: string, body: string): string {
  return /\/bucket(\?|$)/.test(path)
    ? body.replace(/"verify":[^,}]+/g, '"verify":false').replace(/^\{(?!\})/, '{"verify":false,')
    : body;
}

/** What must hold of every answer to whatever request. */
function judge(answer: Answer): void {
  expect(answer.status, answer.text).toBeLessThan(500);
  expect(leaksOf(answer, victim)).toEqual([]);
  expect(answer.headers['x-request-id']).toMatch(/^[\w.:-]{1,128}$/);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  if (answer.status < 400) return;
  const body = JSON.parse(answer.text) as { message: string; code: string };
  expect(body).toMatchObject({ success: false, data: {}, requestId: answer.headers['x-request-id'] });
  expect(body).toMatchObject({ code: expect.stringMatching(/^[A-Z][A-Z0-9_]+$/) as string, error: body.message });
  // No stack, no driver's words, no place in the code.
  expect(answer.text).not.toMatch(/\.(ts|js):\d|node_modules|Mongo|BSON|E11000|at \w+ \(/);
}

/** After these the sender may have lost what the following requests need. */
function spends({ method, path }: FuzzedRequest): boolean {
  return (
    method === 'DELETE' ||
    /bucket|keys|rename|disable|password|logout|sessions|collections|users|projects\/[^/]+$/.test(path)
  );
}

describe(`every operation of the OpenAPI document, ${RUNS} requests each (seed ${SEED})`, () => {
  const document = buildApiDocument(ROUTE_LISTS, '0');

  it.each(fuzzOperations(document).map(({ title, request }) => [title, request] as const))(
    '%s never answers 500, another project’s canary, or an error of another shape',
    async (_title, request) => {
      let spent = false;
      await fc.assert(
        fc.asyncProperty(request, async (fuzzed) => {
          if (spent) own = await buildEstate(stage, 'pebble');
          const answer = await send(fuzzed);
          spent = answer.status < 300 && fuzzed.method !== 'GET' && spends(fuzzed);
          judge(answer);
        }),
        { seed: SEED, numRuns: RUNS },
      );
      if (spent) own = await buildEstate(stage, 'pebble');
    },
    600_000,
  );

  it('leave the other project as it was, and the server well and small', async () => {
    expect(await readEverything(stage, victim)).toBe(before);
    expect((await fire(stage, { method: 'GET', path: '/api/health' })).status).toBe(200);
    expect(measureHeldMemory() - heldBefore).toBeLessThan(MAX_GROWTH_BYTES);
    expect(stage.logLines.filter((line) => line.includes('"level":50'))).toEqual([]);
  });
});
