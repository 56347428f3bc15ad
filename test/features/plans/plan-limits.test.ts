import { describe, expect, it } from 'vitest';
import { findLimit, LIMIT_NAMES } from '../../../src/features/plans/plan-limits.js';

const MIB = 1024 * 1024;

describe('limits of a project', () => {
  it.each([
    ['free', { mail: 50, webhooks: 3, storage: 100 * MIB, database: 50 * MIB, streams: 1_000, userShare: 50 }],
    ['pro', { mail: 1_000, webhooks: null, storage: 5_120 * MIB, database: 5_120 * MIB, streams: null, userShare: 50 }],
  ] as const)('are those of the plan %s', (plan, limits) => {
    const project = { plan, limits: {} };
    expect(Object.fromEntries(LIMIT_NAMES.map((name) => [name, findLimit(project, name)]))).toEqual(limits);
  });

  it('are overridden one by one, to zero as well', () => {
    const project = { plan: 'free', limits: { mail: 0, storage: 7 } } as const;
    expect(findLimit(project, 'mail')).toBe(0);
    expect(findLimit(project, 'storage')).toBe(7);
    expect(findLimit(project, 'webhooks')).toBe(3);
  });

  it('never come from the prototype of the overrides', () => {
    expect(findLimit({ plan: 'free', limits: Object.create({ mail: 1 }) as Record<string, number> }, 'mail')).toBe(50);
  });
});
