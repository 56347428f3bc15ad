import { EventEmitter } from 'node:events';
import type { Worker } from 'node:cluster';
import { expect, it } from 'vitest';
import { openProcessGroupHost } from '../../src/platform/processes/group-host.js';
import { eventually } from '../helpers/eventually.js';

it('a process group reports a process that has fallen silent, once, and no other', async () => {
  const stuck: unknown[] = [];
  const host = openProcessGroupHost({}, (process) => stuck.push(process), { stuckMs: 400, lookMs: 50 });
  const [lively, silent, starting] = [new EventEmitter(), new EventEmitter(), new EventEmitter()];
  for (const each of [lively, silent, starting]) host.serve(each as Worker);
  silent.emit('message', { bsvc: 'heartbeat' });
  const beating = setInterval(() => lively.emit('message', { bsvc: 'heartbeat' }), 20);
  await eventually('it is noticed', () => stuck.length > 0);
  // One that comes back to life by itself and falls silent again is told of again; the others are not.
  silent.emit('message', { bsvc: 'heartbeat' });
  await eventually('it is noticed again', () => stuck.length > 1);
  clearInterval(beating);
  expect(stuck).toEqual([silent, silent]);
});
