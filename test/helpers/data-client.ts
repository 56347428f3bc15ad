import supertest, { type Response, type Test } from 'supertest';
import { expect } from 'vitest';
import { signAccessToken } from '../../src/features/access/sign-access-token.js';
import type { TestProject } from './build-project.js';
import type { TestApp } from './open-test-app.js';

export type Headers = Record<string, string>;

/** What a server of the project sends with each request. */
export const serverOf = ({ secret }: TestProject): Headers => ({ 'x-api-key': secret });

/** What an application sends for a signed-in user, who need not be stored. */
export function userOf({ app }: Pick<TestApp, 'app'>, owner: TestProject, userId: string, ttlMs = 600_000): Headers {
  const authorization = `Bearer ${signAccessToken(app, owner.project, userId, ttlMs)}`;
  return { 'x-api-key': owner.publishable, authorization };
}

export type DataMethod = 'get' | 'post' | 'put' | 'patch' | 'delete';
/** A request at `/api/data/` and the path. */
export type DataClient = (method: DataMethod, path: string, body?: unknown, more?: object) => Test;

/** The documents' API, for a caller with these headers; a function is asked anew for each request. */
export function openDataClient({ server }: Pick<TestApp, 'server'>, own: Headers | (() => Headers)): DataClient {
  return (method, path, body, more) => {
    const headers = typeof own === 'function' ? own() : own;
    const request = supertest(server)
      [method](`/api/data/${path}`)
      .set({ ...headers, ...more });
    return body === undefined ? request : request.send(body as object);
  };
}

/** The id of the document that the request has stored or changed. */
export async function idIn(request: PromiseLike<Response>): Promise<string> {
  const { status, text, body } = await request;
  expect([200, 201], text).toContain(status);
  return (body as { _id: string })._id;
}

interface Detail {
  field: string;
  rule: string;
  side?: string;
}

/** What a reply says in short: `200`, or `403 RULE_REFUSED before` with what its first detail names. */
export async function outcome(
  answer: PromiseLike<Pick<Response, 'status' | 'body'>>,
  named: (detail: Detail) => string = ({ side, rule }) => side ?? rule,
): Promise<string> {
  const { status, body } = await answer;
  const { code, details } = body as { code?: string; details?: Detail[] };
  return [status, code, details?.[0] && named(details[0])].filter((part) => part !== undefined).join(' ');
}
