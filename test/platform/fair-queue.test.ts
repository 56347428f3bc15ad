import { describe, expect, it, vi } from 'vitest';
import { openFairQueue } from '../../src/platform/processes/fair-queue.js';

const LIMITS = { concurrency: 3, perTenant: 2, maxWaiting: 4, maxWaitingPerTenant: 3 };

/** Work that ends when it is told to. */
function buildWork() {
  const running: { name: string; end: (error?: Error) => void }[] = [];
  const work = (name: string) => () =>
    new Promise<string>((resolve, reject) => {
      running.push({ name, end: (error) => (error ? reject(error) : resolve(name)) });
    });
  const names = () => running.map(({ name }) => name);
  const end = async (name: string, error?: Error) => {
    running.splice(names().indexOf(name), 1)[0]!.end(error);
    await new Promise(setImmediate);
  };
  return { work, names, end };
}

describe('turns', () => {
  it('lets no tenant have all of them, and passes over one that has enough', async () => {
    const turns = openFairQueue(LIMITS);
    const { work, names, end } = buildWork();
    const all = ['a1', 'a2', 'a3', 'b1', 'b2'].map((name) => turns.inTurn(name[0]!, work(name)));
    await new Promise(setImmediate);
    expect(names()).toEqual(['a1', 'a2', 'b1']);
    await end('b1');
    expect(names()).toEqual(['a1', 'a2', 'b2']);
    await end('a1');
    expect(names()).toEqual(['a2', 'b2', 'a3']);
    for (const name of ['a2', 'b2', 'a3']) await end(name);
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2']);
  });

  it('goes on after work that failed', async () => {
    const turns = openFairQueue({ ...LIMITS, concurrency: 1 });
    const { work, names, end } = buildWork();
    const failing = turns.inTurn('a', work('first')).catch((error: Error) => error.message);
    const next = turns.inTurn('a', work('second'));
    await new Promise(setImmediate);
    await end('first', new Error('broken'));
    expect(await failing).toBe('broken');
    expect(names()).toEqual(['second']);
    await end('second');
    expect(await next).toBe('second');
  });

  it('gives up the place of whoever leaves, but not work that has begun', async () => {
    const turns = openFairQueue({ ...LIMITS, concurrency: 1, maxWaiting: 1 });
    const { work, names, end } = buildWork();
    const gone = new AbortController();
    const running = turns.inTurn('a', work('a1'), gone.signal);
    const leaving = turns.inTurn('a', work('a2'), gone.signal);
    await expect(turns.inTurn('b', work('b1'))).rejects.toMatchObject({ code: 'BUSY' });
    gone.abort();
    await expect(leaving).rejects.toMatchObject({ kind: 'abandoned' });
    await expect(turns.inTurn('a', work('a3'), gone.signal)).rejects.toMatchObject({ kind: 'abandoned' });
    const next = turns.inTurn('b', work('b2'));
    await end('a1');
    expect(await running).toBe('a1');
    expect(names()).toEqual(['b2']);
    await end('b2');
    expect(await next).toBe('b2');
  });

  it('answers 503 to whoever has waited too long, and goes on with the others', async () => {
    vi.useFakeTimers();
    try {
      const turns = openFairQueue({ ...LIMITS, concurrency: 1, maxWaitMs: 1_000 });
      const release: (() => void)[] = [];
      const work = () => new Promise<void>((resolve) => release.push(resolve));
      const first = turns.inTurn('a', work);
      const late = expect(turns.inTurn('b', work)).rejects.toMatchObject({ kind: 'unavailable', code: 'BUSY' });
      await vi.advanceTimersByTimeAsync(999);
      const next = turns.inTurn('c', work);
      await vi.advanceTimersByTimeAsync(1);
      await late;
      release[0]!();
      await first;
      await vi.advanceTimersByTimeAsync(0);
      expect(release).toHaveLength(2);
      await vi.advanceTimersByTimeAsync(5_000);
      release[1]!();
      await next;
    } finally {
      vi.useRealTimers();
    }
  });

  it('answers 503 at once when too many wait, of one tenant or in all', async () => {
    const turns = openFairQueue(LIMITS);
    const { work, end } = buildWork();
    const accepted = ['a1', 'a2', 'a3', 'a4', 'a5'].map((name) => turns.inTurn('a', work(name)));
    await expect(turns.inTurn('a', work('a6'))).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'BUSY',
      retryAfterSeconds: 1,
    });
    accepted.push(turns.inTurn('b', work('b1')), turns.inTurn('b', work('b2')));
    await expect(turns.inTurn('c', work('c1'))).rejects.toMatchObject({ code: 'BUSY' });
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2']) {
      await new Promise(setImmediate);
      await end(name);
    }
    expect(await Promise.all(accepted)).toHaveLength(7);
  });

  it('costs as little when thousands of one tenant wait as when few do, those who give up included', async () => {
    const most = 15_000;
    const turns = openFairQueue({ concurrency: 8, perTenant: 4, maxWaiting: most, maxWaitingPerTenant: most });
    const gone: AbortController[] = [];
    const told: number[] = [];
    const before = process.cpuUsage();
    const all = Array.from({ length: most }, (_, n) => {
      const work = async (): Promise<void> => void told.push(n);
      if (n % 2 === 0) return turns.inTurn('a', work);
      gone.push(new AbortController());
      return turns.inTurn('a', work, gone.at(-1)!.signal).catch(() => undefined);
    });
    for (const leaving of gone) leaving.abort();
    await Promise.all(all);
    const { user } = process.cpuUsage(before);
    // The first four had begun before anybody left.
    expect(told).toEqual([0, 1, 2, 3, ...Array.from({ length: most / 2 - 2 }, (_, n) => 4 + 2 * n)]);
    expect(user / 1e6).toBeLessThan(3);
  });
});
