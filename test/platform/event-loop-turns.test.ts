import { describe, expect, it } from 'vitest';
import { observeTurns, ownTurn, turn, waitingForTurns } from '../../src/scheduler.js';

const tenant = (project: string, address = '1') => ({ project, address });
const nextLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('turns of the event loop', () => {
  it('small work passes without a promise until a turn is full, and again in the next', async () => {
    await nextLoop();
    await nextLoop();
    const passed = Array.from({ length: 60 }, () => turn(0.1, tenant('a')));
    expect(passed.filter((each) => each === undefined)).toHaveLength(50);
    for (const each of passed) await each;
    await nextLoop();
    expect(turn(0.1, tenant('a'))).toBeUndefined();
  });

  it('projects take turns, and addresses in each of them, however many pieces one has', async () => {
    const order: string[] = [];
    const work = async (project: string, address: string): Promise<void> => {
      await turn(20, tenant(project, address));
      order.push(`${project}${address}`);
    };
    const all = [
      ...Array.from({ length: 5 }, () => work('a', '1')),
      work('a', '2'),
      ...Array.from({ length: 2 }, () => work('b', '3')),
    ];
    await Promise.all(all);
    expect(order).toEqual(['a1', 'b3', 'a2', 'b3', 'a1', 'a1', 'a1', 'a1']);
  });

  it('a turn of the loop begins one heavy piece, or several that fit', async () => {
    let loops = 0;
    let isOver = false;
    const countLoops = (): void => {
      loops++;
      if (!isOver) setImmediate(countLoops);
    };
    setImmediate(countLoops);
    const begun = async (ms: number): Promise<number> => {
      await turn(ms, tenant('a'));
      return loops;
    };
    const heavy = await Promise.all(Array.from({ length: 10 }, () => begun(8)));
    expect(new Set(heavy).size).toBe(10);
    const light = await Promise.all(Array.from({ length: 10 }, () => begun(1)));
    expect(new Set(light).size).toBe(2);
    isOver = true;
  });

  it('the work of the service itself waits for its turn beside that of clients', async () => {
    const order: string[] = [];
    const all = [
      turn(20, tenant('a'))!.then(() => order.push('a')),
      turn(20, tenant('a'))!.then(() => order.push('a')),
      ownTurn().then(() => order.push('own')),
    ];
    expect(waitingForTurns()).toBe(3);
    await Promise.all(all);
    expect(order).toEqual(['a', 'own', 'a']);
    expect(waitingForTurns()).toBe(0);
  });

  it('says of each kind of work what was estimated and what it took', async () => {
    const seen: [string, number][] = [];
    observeTurns((kind, estimated) => seen.push([kind, estimated]));
    await turn(7, tenant('a'), 'document');
    await nextLoop();
    observeTurns(() => undefined);
    expect(seen).toEqual([['document', 7]]);
  });
});
