import { describe, expect, it } from 'vitest';
import type { Tenant } from '../../src/turns.js';
import { openReplyBudget } from '../../src/platform/processes/reply-budget.js';

const LIMITS = { inAll: 5, ofProject: 3, ofAddress: 2, ms: 60_000 };
/** Servers of three projects, which no address counts, and two clients of the first project. */
const a: Tenant = { project: 'a', address: '' };
const [b, c] = [
  { ...a, project: 'b' },
  { ...a, project: 'c' },
];
const [near, far] = [
  { ...a, address: '192.0.2.1' },
  { ...a, address: '192.0.2.2' },
];
const BUSY = { kind: 'unavailable', code: 'BUSY', retryAfterSeconds: 1 };

/** Asks for room and notes its name when it has it. */
function openQueue(limits = LIMITS) {
  const budget = openReplyBudget(100, limits);
  const started: string[] = [];
  const ask = (name: string, tenant: Tenant, bytes: number, signal?: AbortSignal): Promise<unknown> =>
    budget.wait(tenant, bytes, signal).then(() => started.push(name));
  return { budget, started, ask, settle: () => new Promise((resolve) => setImmediate(resolve)) };
}

describe('the budget of replies under way', () => {
  it('gives one tenant half at most, so that others have room', () => {
    const { budget } = openQueue();
    expect(budget.take(a, 50)).toBe(true);
    expect(budget.take(a, 1)).toBe(false);
    expect(budget.take(b, 50)).toBe(true);
    expect(budget.held()).toBe(100);
    expect(budget.take(c, 1)).toBe(false);
  });

  it('gives a request that wants more than there is for a tenant all of that', async () => {
    expect(await openQueue().budget.wait(a, 1_000)).toBe(50);
  });

  it('gives one address an eighth at most, whatever projects it asks, and others the rest of the project', async () => {
    const { budget } = openQueue();
    expect(await budget.wait(near, 1_000)).toBe(12);
    expect(budget.take({ ...near, project: 'b' }, 1)).toBe(false);
    expect(budget.take(far, 12)).toBe(true);
    expect([budget.take(a, 27), budget.take(a, 26)]).toEqual([false, true]);
  });

  it('is given to the address that holds least, of those of a project', async () => {
    const { budget, started, ask } = openQueue();
    budget.add(near, 2);
    budget.add(a, 48);
    const both = [ask('near', near, 10), ask('far', far, 10)];
    budget.giveBack(a, 10);
    budget.giveBack(a, 10);
    await Promise.all(both);
    expect(started).toEqual(['far', 'near']);
  });

  it('lets only so many of an address wait, fewer than of a project', async () => {
    const { budget, ask } = openQueue();
    budget.add(a, 50);
    const gone = new AbortController();
    const ends = Promise.allSettled(['1', '2'].map((name) => ask(name, near, 10, gone.signal)));
    await expect(budget.wait(near, 1)).rejects.toMatchObject(BUSY);
    const other = Promise.allSettled([ask('3', far, 10, gone.signal)]);
    await expect(budget.wait(c, 1)).resolves.toBe(1);
    gone.abort();
    await Promise.all([ends, other]);
  });

  it('lets those wait for whom there is no room, the tenant that holds least first, each in order', async () => {
    const { budget, started, ask, settle } = openQueue();
    budget.add(a, 40);
    budget.add(b, 50);
    const all = [ask('a1', a, 10), ask('a2', a, 10), ask('b1', b, 10), ask('c1', c, 20)];
    await settle();
    expect(started).toEqual(['a1']);
    budget.giveBack(b, 50);
    await settle();
    expect(started).toEqual(['a1', 'b1', 'c1']);
    budget.giveBack(a, 10);
    await Promise.all(all);
    expect(started).toEqual(['a1', 'b1', 'c1', 'a2']);
    expect(budget.held()).toBe(80);
  });

  it('does not let a small one pass a large one of the same tenant', async () => {
    const { budget, started, ask, settle } = openQueue();
    budget.add(a, 30);
    const large = ask('large', a, 40);
    expect(budget.take(a, 1)).toBe(false);
    budget.giveBack(a, 30);
    await large;
    await settle();
    expect(started).toEqual(['large']);
    expect(budget.take(a, 1)).toBe(true);
  });

  it('refuses those beyond the number that may wait with BUSY, of one tenant first', async () => {
    const { budget, ask } = openQueue();
    budget.add(a, 50);
    budget.add(b, 50);
    const gone = new AbortController();
    const waiting = [a, a, a, b, b].map((tenant, at) => ask(`${at}`, tenant, 10, gone.signal));
    const ends = Promise.allSettled(waiting);
    await expect(budget.wait(a, 1)).rejects.toMatchObject(BUSY);
    await expect(budget.wait(c, 1)).rejects.toMatchObject(BUSY);
    gone.abort();
    expect((await ends).map(({ status }) => status)).toEqual(Array(5).fill('rejected'));
    expect(budget.held()).toBe(100);
  });

  it('refuses who has waited for too long with BUSY', async () => {
    const { budget } = openQueue({ ...LIMITS, ms: 1 });
    budget.add(a, 50);
    await expect(budget.wait(a, 1)).rejects.toMatchObject(BUSY);
  });

  it('gives up the place of a client that leaves, and others go on', async () => {
    const { budget, started, ask, settle } = openQueue();
    budget.add(a, 30);
    const gone = new AbortController();
    const left = ask('left', a, 40, gone.signal);
    const next = ask('next', a, 20);
    await settle();
    expect(started).toEqual([]);
    gone.abort();
    await expect(left).rejects.toMatchObject({ code: 'CLIENT_LEFT' });
    await next;
    expect(started).toEqual(['next']);
    await expect(budget.wait(a, 1, gone.signal)).rejects.toMatchObject({ code: 'CLIENT_LEFT' });
  });

  it('speaks of room only to who would be given it', async () => {
    const { budget, ask } = openQueue();
    budget.add(a, 30);
    const gone = new AbortController();
    const large = ask('large', a, 40, gone.signal);
    const small = budget.room(a);
    expect([small === null, budget.take(a, 10)]).toEqual([false, false]);
    gone.abort();
    await expect(large).rejects.toThrow();
    await small;
    expect([budget.room(a), budget.take(a, 10)]).toEqual([null, true]);
  });

  it('tells a tenant that is over its share to wait, and nobody else', async () => {
    const { budget } = openQueue();
    expect(budget.room(a)).toBeNull();
    budget.add(a, 70);
    expect(budget.room(b)).toBeNull();
    const room = budget.room(a);
    budget.giveBack(a, 70);
    await room;
    expect(budget.held()).toBe(0);
  });
});
