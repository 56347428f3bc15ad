import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { S3Store } from '../../../platform/object-store/s3-store.js';

const KNOWN_MS = 10 * 60 * 1000;
const known = new WeakMap<S3Store, { answer: Promise<boolean>; until: number }>();

/** Whether anybody can read the objects of a bucket, by one that is stored for the moment; kept ten minutes. */
export function isPublicBucket(store: S3Store): Promise<boolean> {
  const before = known.get(store);
  if (before && performance.now() < before.until) return before.answer;
  const answer = readsWithoutRight(store);
  known.set(store, { answer, until: performance.now() + KNOWN_MS });
  answer.catch(() => known.delete(store));
  return answer;
}

/** The same, tried now. */
export async function readsWithoutRight(store: S3Store): Promise<boolean> {
  const key = `bsvc-check/${randomUUID()}`;
  await store.put(key, Readable.from([Buffer.from('bsvc checks this bucket')]), {
    contentType: 'text/plain',
    attachment: true,
  });
  try {
    return (await store.sendUnsignedGets(key)).some((status) => status < 400);
  } finally {
    await store.remove(key);
  }
}
