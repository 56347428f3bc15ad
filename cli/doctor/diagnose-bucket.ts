import type { App } from '../../src/app.js';
import { checkBucket, SOME_ORIGIN, type BucketCheck } from '../../src/features/files/bucket/check-bucket.js';

/**
 * Tests of the service's own bucket, under the names `bucket: …`; none when files are kept in the data directory. With
 * `fix`, pages of every origin are let in when none are.
 */
export async function diagnoseBucket(app: App, options: { fix: boolean }): Promise<BucketCheckLine[]> {
  const store = await app.files.openPlatformBucket();
  if (!store) return [];
  let checks = await checkBucket(store, SOME_ORIGIN);
  if (options.fix && checks.some(({ name, ok }) => name === 'cors' && !ok)) {
    try {
      await store.applyCors(['*']);
      checks = await checkBucket(store, SOME_ORIGIN);
    } catch (error) {
      const cors = checks.find(({ name }) => name === 'cors')!;
      cors.detail = `${cors.detail}; setting the rules failed: ${(error as Error).message}`;
    }
  }
  return checks.map((check) => ({
    ...check,
    name: `bucket: ${check.name}`,
    hint: check.hint && check.name === 'cors' ? `${check.hint} "bsvc doctor --fix" does so.` : check.hint,
  }));
}

type BucketCheckLine = Omit<BucketCheck, 'name'> & { name: string };
