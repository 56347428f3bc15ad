import { EventEmitter } from 'node:events';
import type { Worker } from 'node:cluster';
import { expect, it } from 'vitest';
import { openMemoryCounter } from '../../src/platform/rate-limit/memory-counter.js';
import { openProcessGroupHost } from '../../src/platform/process-group.js';
import { eventually } from '../helpers/eventually.js';
import { createFakeClock } from '../helpers/fake-clock.js';

it('tells of a process that has fallen silent, once, and of no other', async () => {
  const counter = openMemoryCounter(createFakeClock());
  const stuck: unknown[] = [];
  const host = openProcessGroupHost(counter, (process) => stuck.push(process), { stuckMs: 400, lookMs: 50 });
  const [lively, silent, starting] = [new EventEmitter(), new EventEmitter(), new EventEmitter()];
  for (const each of [lively, silent, starting]) host.serve(each as Worker);
  silent.emit('message', { bsvc: 'beat' });
  const beating = setInterval(() => lively.emit('message', { bsvc: 'beat' }), 20);
  await eventually('it is noticed', () => stuck.length > 0);
  // One that comes back to life by itself and falls silent again is told of again; the others are not.
  silent.emit('message', { bsvc: 'beat' });
  await eventually('it is noticed again', () => stuck.length > 1);
  clearInterval(beating);
  expect(stuck).toEqual([silent, silent]);
  await counter.close();
});
