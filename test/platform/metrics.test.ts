import { expect, it } from 'vitest';
import { openMetrics } from '../../src/platform/observe/metrics.js';

it('leaves out a gauge that cannot be read just now, or not soon, and tells all others', async () => {
  const metrics = openMetrics();
  metrics.gauge('broken', 'Throws at once', () => {
    throw new Error('the store is closed');
  });
  metrics.gauge('refused', 'Fails', () => Promise.reject(new Error('the database is away')));
  metrics.gauge('silent', 'Never answers', () => new Promise(() => undefined));
  metrics.gauge('good', 'Answers', () => [{ value: 7 }]);
  const collected = await metrics.collect();
  const valuesOf = (name: string): unknown => collected.find((metric) => metric.name === name)?.values;
  expect(['bsvc_broken', 'bsvc_refused', 'bsvc_silent'].map(valuesOf)).toEqual([[], [], []]);
  expect(valuesOf('bsvc_good')).toEqual([{ labels: {}, value: 7 }]);
  expect(valuesOf('process_resident_memory_bytes')).toHaveLength(1);
});
