import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { OPERATORS_TENANT } from '../../src/http/admission/tenants.js';
import { Room, type RoomRefusal } from '../../src/http/admission/room.js';

const MOST = 100;

function openRoom(maxWaitMs = 60_000) {
  const refusals: RoomRefusal[] = [];
  const onRefusal = (refusal: RoomRefusal): void => void refusals.push(refusal);
  const room = new Room({ stage: 'test', unit: 'things', most: MOST, maxWaitMs, maxWaiting: MOST, onRefusal });
  return { room, refusals };
}

const client = (): ServerResponse => new EventEmitter() as ServerResponse;
const tenant = (project: string, address: string) => ({ project, address });

/** Lets as many of a tenant in as there is room for; their number. */
function fill(room: Room, project: string, address: string): number {
  const before = room.held;
  for (;;) {
    const res = client();
    const waits = room.enter(tenant(project, address), 1, res);
    if (waits === null) continue;
    waits.catch(() => undefined);
    res.emit('close');
    return room.held - before;
  }
}

describe('a room', () => {
  it('gives one address a quarter, one project half, and keeps the rest for others', () => {
    const { room } = openRoom();
    expect(fill(room, 'a', '1')).toBe(MOST / 4);
    expect(fill(room, 'a', '2')).toBe(MOST / 10);
    for (const address of ['3', '4', '5']) fill(room, 'a', address);
    expect(room.held).toBe(MOST / 2);
    expect(fill(room, 'b', '1')).toBe(0);
    expect(fill(room, 'b', '9')).toBe(MOST / 10);
  });

  it('is never held beyond its measure, and has all of it back', () => {
    const { room } = openRoom();
    const taken: { project: string; address: string }[] = [];
    for (let at = 0; at < 50; at++) {
      const who = tenant(`p${at % 7}`, `a${at % 23}`);
      for (let more = 0; more < 10; more++) {
        const res = client();
        const waits = room.enter(who, 1, res);
        if (waits === null) taken.push(who);
        else waits.catch(() => undefined);
        res.emit('close');
      }
    }
    expect(room.held).toBeLessThanOrEqual(MOST);
    expect(room.held).toBe(taken.length);
    for (const who of taken) room.leave(who, 1);
    expect([room.held, room.waiting]).toEqual([0, 0]);
  });

  it('lets those who hold least in first', async () => {
    const { room } = openRoom();
    for (let at = 0; at < MOST * 0.95; at++) room.add(tenant(`p${at % 2}`, `a${at}`), 1);
    const order: string[] = [];
    const wait = (project: string, address: string) =>
      room.enter(tenant(project, address), 1, client())!.then(() => order.push(project));
    const waiting = [wait('p0', 'x'), wait('p0', 'y'), wait('new', 'z')];
    room.leave(tenant('p0', 'a0'), 1);
    room.leave(tenant('p0', 'a2'), 1);
    room.leave(tenant('p0', 'a4'), 1);
    await Promise.all(waiting);
    expect(order).toEqual(['new', 'p0', 'p0']);
  });

  it('keeps its last twentieth for operators', () => {
    const { room } = openRoom();
    for (let at = 0; at < 30; at++) fill(room, `p${at % 3}`, `a${at}`);
    expect(room.held).toBe(MOST * 0.95);
    expect(fill(room, OPERATORS_TENANT, 'b')).toBe(MOST * 0.05);
  });

  it('lets no tenant fill the waiting line, and says who was refused', async () => {
    const { room, refusals } = openRoom(1);
    fill(room, 'a', '1');
    const waits = Array.from({ length: MOST }, async () => {
      try {
        return await room.enter(tenant('a', '1'), 1, client());
      } catch (error) {
        return error as Error;
      }
    });
    expect(room.waiting).toBe(MOST / 4);
    for (const outcome of await Promise.all(waits)) expect(outcome).toMatchObject({ code: 'OVERLOADED' });
    expect(refusals).toHaveLength(MOST);
    expect(refusals[0]).toEqual({ stage: 'test', unit: 'things', scope: 'address', limit: MOST / 10 });
  });
});
