import { describe, expect, it, vi } from 'vitest';
import { FairLimiter, type LimiterOptions, type Tenant } from '../../src/fair-limiter.js';
import { type LoadRejection, openStage } from '../../src/http/admission/rejections.js';
import { OPERATORS_TENANT } from '../../src/http/admission/tenants.js';

const tenant = (project: string, address = ''): Tenant => ({ project, address });
const [a, b, c, near, far] = [tenant('a'), tenant('b'), tenant('c'), tenant('a', '1'), tenant('a', '2')];
const BUSY = { kind: 'unavailable', code: 'BUSY', retryAfterSeconds: 1 };
const SHARES = { all: 100, project: 50, address: 12 };
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Asks for some of the whole and notes its name when it has it. */
function openAsked(options: Partial<LimiterOptions> = {}) {
  const limiter = new FairLimiter({ shares: SHARES, ...options });
  const started: string[] = [];
  const ask = (name: string, who: Tenant, amount: number, signal?: AbortSignal): Promise<unknown> =>
    limiter.take(who, amount, signal).then(() => started.push(name));
  return { limiter, started, ask };
}

/** Work that ends when it is told to; the first letter of its name is its project. */
function openWork(options: LimiterOptions) {
  const limiter = new FairLimiter(options);
  const running: { name: string; end: (error?: Error) => void }[] = [];
  const work = (name: string) => (): Promise<string> =>
    new Promise<string>((resolve, reject) => {
      running.push({ name, end: (error) => (error ? reject(error) : resolve(name)) });
    });
  const run = (name: string, signal?: AbortSignal): Promise<string> =>
    limiter.run(tenant(name[0]!), work(name), signal);
  const names = (): string[] => running.map(({ name }) => name);
  const end = async (name: string, error?: Error): Promise<void> => {
    running.splice(names().indexOf(name), 1)[0]!.end(error);
    await settle();
  };
  return { run, names, end };
}

describe('shares of a whole', () => {
  it('give one project half at most, so that others have room', () => {
    const { limiter } = openAsked();
    expect([limiter.tryTake(a, 50), limiter.tryTake(a, 1), limiter.tryTake(b, 50)]).toEqual([true, false, true]);
    expect([limiter.held, limiter.tryTake(c, 1)]).toEqual([100, false]);
  });

  it('count an address in all projects that it asks, and leave others the rest of the project', () => {
    const { limiter } = openAsked();
    expect([a, near].map((who) => limiter.within(who, 1_000))).toEqual([50, 12]);
    const took = [near, tenant('b', '1'), far].map((who) => limiter.tryTake(who, 12));
    expect([...took, limiter.tryTake(a, 27), limiter.tryTake(a, 26)]).toEqual([true, false, true, false, true]);
  });

  it('let those wait for whom there is no room: who holds least first, each in order', async () => {
    const { limiter, started, ask } = openAsked();
    limiter.add(a, 40);
    limiter.add(b, 50);
    const all = [ask('a1', a, 10), ask('a2', a, 10), ask('b1', b, 10), ask('c1', c, 20)];
    await settle();
    expect(started).toEqual(['a1']);
    limiter.giveBack(b, 50);
    await settle();
    expect(started).toEqual(['a1', 'b1', 'c1']);
    limiter.giveBack(a, 10);
    await Promise.all(all);
    expect(started).toEqual(['a1', 'b1', 'c1', 'a2']);
    expect(limiter.held).toBe(80);
  });

  it('give room to the address that holds least, of those of a project', async () => {
    const { limiter, started, ask } = openAsked();
    limiter.add(near, 2);
    limiter.add(a, 48);
    const both = [ask('near', near, 10), ask('far', far, 10)];
    limiter.giveBack(a, 10);
    limiter.giveBack(a, 10);
    await Promise.all(both);
    expect(started).toEqual(['far', 'near']);
  });

  it('let no small one pass a large one of the same tenant', async () => {
    const { limiter, started, ask } = openAsked();
    limiter.add(a, 30);
    const large = ask('large', a, 40);
    expect(limiter.tryTake(a, 1)).toBe(false);
    limiter.giveBack(a, 30);
    await large;
    expect([started, limiter.tryTake(a, 1)]).toEqual([['large'], true]);
  });

  it('let projects take turns that hold nothing, and in each of them its addresses', async () => {
    const { limiter, started, ask } = openAsked({ shares: { all: 1 } });
    limiter.add(tenant('x'), 1);
    const asked = ['a1', 'a1', 'a1', 'a2', 'b1', 'b1'];
    const all = asked.map((name) =>
      ask(name, tenant(name[0]!, name[1]), 1).then(() => limiter.giveBack(tenant(name[0]!, name[1]), 1)),
    );
    limiter.giveBack(tenant('x'), 1);
    await Promise.all(all);
    expect(started).toEqual(['a1', 'b1', 'a2', 'b1', 'a1', 'a1']);
  });

  it('are refused to those beyond the number that may wait, of an address and a project first', async () => {
    const { limiter, ask } = openAsked({ waiting: { all: 5, project: 3, address: 2 } });
    limiter.add(a, 50);
    limiter.add(b, 50);
    const gone = new AbortController();
    const wait = (who: Tenant): Promise<unknown> => ask('', who, 10, gone.signal);
    const ends = [wait(near), wait(near)];
    await expect(wait(near)).rejects.toMatchObject(BUSY);
    ends.push(wait(far));
    await expect(wait(a)).rejects.toMatchObject(BUSY);
    ends.push(wait(b), wait(b));
    await expect(wait(c)).rejects.toMatchObject(BUSY);
    const ended = Promise.allSettled(ends);
    gone.abort();
    expect((await ended).map(({ status }) => status)).toEqual(Array(5).fill('rejected'));
    expect([limiter.held, limiter.waiting]).toEqual([100, 0]);
  });

  it('are refused to whoever has waited for too long', async () => {
    vi.useFakeTimers();
    try {
      const { limiter, ask } = openAsked({ maxWaitMs: 1_000 });
      limiter.add(a, 50);
      const late = expect(ask('late', a, 1)).rejects.toMatchObject(BUSY);
      await vi.advanceTimersByTimeAsync(999);
      const next = ask('next', a, 1);
      await vi.advanceTimersByTimeAsync(1);
      await late;
      limiter.giveBack(a, 50);
      await next;
    } finally {
      vi.useRealTimers();
    }
  });

  it('are given up by a client that leaves, and others go on', async () => {
    const { limiter, started, ask } = openAsked();
    limiter.add(a, 30);
    const gone = new AbortController();
    const left = ask('left', a, 40, gone.signal);
    const next = ask('next', a, 20);
    await settle();
    expect(started).toEqual([]);
    gone.abort();
    await expect(left).rejects.toMatchObject({ code: 'CLIENT_LEFT' });
    await next;
    expect(started).toEqual(['next']);
    await expect(limiter.take(a, 1, gone.signal)).rejects.toMatchObject({ code: 'CLIENT_LEFT' });
  });

  it('have room for who would be given some, and nobody else', async () => {
    const { limiter, ask } = openAsked();
    limiter.add(a, 30);
    const gone = new AbortController();
    const large = ask('large', a, 40, gone.signal);
    const small = limiter.room(a);
    expect([small === null, limiter.room(b), limiter.tryTake(a, 10)]).toEqual([false, null, false]);
    gone.abort();
    await expect(large).rejects.toThrow();
    await small;
    expect([limiter.room(a), limiter.tryTake(a, 10), limiter.held]).toEqual([null, true, 40]);
  });
});

describe('places for work', () => {
  const PLACES = { shares: { all: 3, project: 2 } };

  it('are never all of one project, and one that has enough is passed over', async () => {
    const { run, names, end } = openWork(PLACES);
    const all = ['a1', 'a2', 'a3', 'b1', 'b2'].map((name) => run(name));
    await settle();
    expect(names()).toEqual(['a1', 'a2', 'b1']);
    await end('b1');
    expect(names()).toEqual(['a1', 'a2', 'b2']);
    await end('a1');
    expect(names()).toEqual(['a2', 'b2', 'a3']);
    for (const name of ['a2', 'b2', 'a3']) await end(name);
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2']);
  });

  it('are given to others after work that failed, and by whoever leaves, but not by work that has begun', async () => {
    const { run, names, end } = openWork({ shares: { all: 1 } });
    const gone = new AbortController();
    const failing = run('a1', gone.signal).catch((error: Error) => error.message);
    const leaving = run('a2', gone.signal);
    const next = run('b1');
    gone.abort();
    await expect(leaving).rejects.toMatchObject({ kind: 'abandoned' });
    expect(names()).toEqual(['a1']);
    await end('a1', new Error('broken'));
    expect([await failing, names()]).toEqual(['broken', ['b1']]);
    await end('b1');
    expect(await next).toBe('b1');
  });

  it('cost as little when thousands of one tenant wait as when few do, those who give up included', async () => {
    const most = 15_000;
    const limiter = new FairLimiter({ shares: { all: 8, project: 4 } });
    const gone = new AbortController();
    const told: number[] = [];
    const before = process.cpuUsage();
    const all = Array.from({ length: most }, (_, n) => {
      const work = async (): Promise<void> => void told.push(n);
      return n % 2 === 0 ? limiter.run(a, work) : limiter.run(a, work, gone.signal).catch(() => undefined);
    });
    gone.abort();
    await Promise.all(all);
    const { user } = process.cpuUsage(before);
    // The first four had begun before anybody left.
    expect(told).toEqual([0, 1, 2, 3, ...Array.from({ length: most / 2 - 2 }, (_, n) => 4 + 2 * n)]);
    expect(user / 1e6).toBeLessThan(3);
  });
});

describe('a stage of requests', () => {
  const MOST = 100;

  function open(maxWaitMs = 60_000) {
    const refusals: LoadRejection[] = [];
    const onRejection = (refusal: LoadRejection): void => void refusals.push(refusal);
    const stage = openStage({ stage: 'test', unit: 'things', most: MOST, maxWaitMs, maxWaiting: MOST, onRejection });
    /** Lets as many of a tenant in as there is room for; their number. */
    const fill = (project: string, address: string): number => {
      const before = stage.held;
      while (stage.tryTake(tenant(project, address), 1));
      return stage.held - before;
    };
    return { stage, refusals, fill };
  }

  it('gives one address a quarter, one project half, and keeps the rest for others', () => {
    const { stage, fill } = open();
    expect([fill('a', '1'), fill('a', '2')]).toEqual([MOST / 4, MOST / 10]);
    for (const address of ['3', '4', '5']) fill('a', address);
    expect(stage.held).toBe(MOST / 2);
    expect([fill('b', '1'), fill('b', '9')]).toEqual([0, MOST / 10]);
  });

  it('keeps its last twentieth for operators', () => {
    const { stage, fill } = open();
    for (let at = 0; at < 30; at++) fill(`p${at % 3}`, `a${at}`);
    expect(stage.held).toBe(MOST * 0.95);
    expect(fill(OPERATORS_TENANT, 'b')).toBe(MOST * 0.05);
  });

  it('is never held beyond its measure, and has all of it back', () => {
    const { stage } = open();
    const asked = Array.from({ length: 500 }, (_, at) => tenant(`p${at % 7}`, `a${at % 23}`));
    const taken = asked.filter((who) => stage.tryTake(who, 1));
    expect(stage.held).toBe(taken.length);
    for (const who of taken) stage.giveBack(who, 1);
    expect([stage.held, stage.waiting, taken.length <= MOST]).toEqual([0, 0, true]);
  });

  it('lets no tenant fill the waiting line, and says who was refused', async () => {
    const { stage, refusals, fill } = open(1);
    fill('a', '1');
    const waits = Array.from({ length: MOST }, () => stage.take(tenant('a', '1'), 1).catch((error: Error) => error));
    expect(stage.waiting).toBe(MOST / 4);
    for (const outcome of await Promise.all(waits)) expect(outcome).toMatchObject({ code: 'OVERLOADED' });
    expect(refusals).toHaveLength(MOST);
    expect(refusals[0]).toEqual({ stage: 'test', unit: 'things', scope: 'address', limit: MOST / 10 });
  });
});
