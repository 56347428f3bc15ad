import supertest, { type Response, type Test } from 'supertest';
import { listOutbox } from '../../src/platform/mail-provider/outbox.js';
import { drainJobs } from '../../src/worker.js';
import type { TestApp } from './open-test-app.js';

export const PASSWORD = 'correct horse battery';

/** An application of a project as its end users meet it: the publishable key on every request. */
export interface UserClient {
  send(
    method: 'get' | 'post' | 'put' | 'patch' | 'delete',
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Test;
  post(path: string, body?: unknown, headers?: Record<string, string>): Test;
  get(path: string, headers?: Record<string, string>): Test;
  /** A new account with its own address; the reply of signup. */
  signUp(fields?: Record<string, unknown>, headers?: Record<string, string>): Promise<Response>;
  logIn(email: string, password?: string, headers?: Record<string, string>): Test;
  me(accessToken: string): Test;
  refresh(refreshToken: string, headers?: Record<string, string>): Test;
}

let made = 0;

/** An address nobody else has. */
export function buildEmail(name = 'user'): string {
  return `${name}${++made}.${process.pid}@example.test`;
}

export function openUserClient(test: TestApp, key: string): UserClient {
  const send: UserClient['send'] = (method, path, body, headers = {}) => {
    const request = supertest(test.server)[method](`/api/userAuth${path}`).set('x-api-key', key).set(headers);
    return body === undefined ? request : request.send(body as object);
  };
  const post: UserClient['post'] = (path, body, headers) => send('post', path, body, headers);
  return {
    send,
    post,
    get: (path, headers) => send('get', path, undefined, headers),
    signUp: async (fields, headers) => post('/signup', { email: buildEmail(), password: PASSWORD, ...fields }, headers),
    logIn: (email, password = PASSWORD, headers = {}) => post('/login', { email, password }, headers),
    me: (accessToken) => send('get', '/me', undefined, bearer(accessToken)),
    refresh: (token, headers = {}) => post('/refresh-token', undefined, { 'x-refresh-token': token, ...headers }),
  };
}

export function bearer(accessToken: string): Record<string, string> {
  return { authorization: `Bearer ${accessToken}` };
}

/**
 * The code in the mail to an address that was asked for last: ids grow as mails are asked for, while the jobs that send
 * them run side by side and end in any order.
 */
export async function readMailedCode(test: TestApp, email: string): Promise<string> {
  await drainJobs(test.app);
  const mails = await listOutbox(test.app, { to: email, limit: 20 });
  const [mail] = mails.sort((a, b) => (a.id < b.id ? 1 : -1));
  const code = /\b\d{6}\b/.exec(mail?.text ?? '')?.[0];
  if (!code) throw new Error(`no code was mailed to ${email}`);
  return code;
}

/** How many mails went to an address. */
export async function countMails(test: TestApp, email: string): Promise<number> {
  await drainJobs(test.app);
  return (await listOutbox(test.app, { to: email })).length;
}
