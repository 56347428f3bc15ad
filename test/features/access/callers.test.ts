import type { Context } from 'koa';
import { describe, expect, it } from 'vitest';
import { tenantOfCaller, type Bearer } from '../../../src/features/access/caller.js';
import { callerFrom } from '../../../src/features/access/require-key.js';
import type { ApiKey } from '../../../src/features/projects/project.js';
import { buildProject } from '../../helpers/build-project.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);

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
