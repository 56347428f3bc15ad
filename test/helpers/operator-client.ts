import supertest, { type Test } from 'supertest';
import { addOperator } from '../../src/features/operators/manage-operators.js';
import type { OperatorRole } from '../../src/features/access/operator.js';
import { openOperatorSession } from '../../src/features/operators/operator-sessions.js';
import type { Project } from '../../src/features/projects/project.js';
import type { TestApp } from './open-test-app.js';

export const OPERATOR_PASSWORD = 'correct horse battery';

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** Somebody at a dashboard: the bearer token on every request. */
export type OperatorClient = (method: Method, path: string, body?: unknown) => Test;

export function openOperatorClient(test: TestApp, token: string): OperatorClient {
  return (method, path, body) => {
    const request = supertest(test.server)[method](path).set('authorization', `Bearer ${token}`);
    return body === undefined ? request : request.send(body as object);
  };
}

let made = 0;

/** A new operator with an address nobody else has, signed in. */
export async function buildOperator(
  test: TestApp,
  role: OperatorRole = 'owner',
  projects: readonly Project[] | null = null,
): Promise<{ id: string; email: string; token: string; call: OperatorClient }> {
  const email = `operator${++made}.${process.pid}@example.test`;
  const operator = await addOperator(test.app, { email, password: OPERATOR_PASSWORD, role, projects });
  const { token } = await openOperatorSession(test.app, operator, 3_600_000);
  return { id: operator._id.toHexString(), email, token, call: openOperatorClient(test, token) };
}
