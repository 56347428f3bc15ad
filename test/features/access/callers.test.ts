import type { Context } from 'koa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { actorOf, tenantOfCaller, type Bearer } from '../../../src/features/access/caller.js';
import { operatorCaller, userCaller } from '../../../src/features/access/operator-access.js';
import { callerFrom } from '../../../src/features/access/require-key.js';
import type { ApiKey } from '../../../src/features/projects/project.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';

let test: TestApp;
let owner: TestProject;
beforeAll(async () => {
  test = await openTestApp();
  owner = await buildProject(test.app);
});
afterAll(() => test.close());

const STRANGER: Bearer = { state: 'absent' };
const USER = { state: 'user', userId: 'ada', session: 's', level: 1 } as Bearer;
const keyOf = (type: ApiKey['type']): ApiKey => owner.project.keys.find((key) => key.type === type)!;
const from = (ip: string) => ({ ip }) as Context;
const come = (type: ApiKey['type'], bearer: Bearer = STRANGER, ip = '203.0.113.7') =>
  callerFrom(from(ip), { project: owner.project, key: keyOf(type) }, bearer);

describe('whose turns and room a request takes', () => {
  it('is the project, and of a publishable key the network too', () => {
    const project = owner.project._id.toHexString();
    expect(tenantOfCaller(come('publishable'))).toEqual({ project, address: '203.0.113.7' });
    expect(tenantOfCaller(come('publishable', USER, '2001:db8:1:2:3:4:5:6')).address).toBe(
      tenantOfCaller(come('publishable', USER, '2001:db8:1:2:9:9:9:9')).address,
    );
    // A server is not counted by its own.
    expect(tenantOfCaller(come('secret'))).toEqual({ project, address: '' });
    expect(come('secret')).not.toHaveProperty('network');
  });
});

describe('as whom a write is told', () => {
  it('is the signed-in user, else the key', () => {
    expect(actorOf(come('publishable', USER))).toEqual({ type: 'user', id: 'ada' });
    for (const type of ['publishable', 'secret'] as const) {
      expect(actorOf(come(type))).toEqual({ type: 'key', id: keyOf(type).id.toHexString() });
      expect(actorOf(come(type, { state: 'invalid', code: 'TOKEN_EXPIRED' }))).toMatchObject({ type: 'key' });
    }
  });
});

describe('an operator inside a project', () => {
  const unstored = { hash: '', last4: '', expiresAt: null, revokedAt: null };

  it('may do what its secret key may', () => {
    const { project } = owner;
    expect(operatorCaller(project)).toEqual({
      project,
      key: { ...unstored, id: project._id, type: 'secret', createdAt: project.createdAt },
      bearer: { state: 'absent' },
    });
  });

  it('is a user, or a caller who is not signed in, with a publishable key', () => {
    const { project } = owner;
    const key = { ...unstored, id: project._id, type: 'publishable', createdAt: project.createdAt };
    expect(userCaller(project, 'ada')).toEqual({ project, key, bearer: { state: 'user', userId: 'ada' } });
    expect(userCaller(project, null)).toEqual({ project, key, bearer: { state: 'absent' } });
  });
});
