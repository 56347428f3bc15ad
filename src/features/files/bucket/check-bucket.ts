import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { AppError } from '../../../errors.js';
import type { S3Store } from '../../../platform/object-store/s3-store.js';

const KNOWN_MS = 10 * 60 * 1000;
const known = new WeakMap<S3Store, { answer: Promise<boolean>; until: number }>();

/** Whether objects of a bucket are publicly readable, tested with a temporary one; cached for ten minutes. */
export function isPublicBucket(store: S3Store): Promise<boolean> {
  const before = known.get(store);
  if (before && performance.now() < before.until) return before.answer;
  const answer = readsWithoutRight(store);
  known.set(store, { answer, until: performance.now() + KNOWN_MS });
  answer.catch(() => known.delete(store));
  return answer;
}

/** The same, tried now. */
async function readsWithoutRight(store: S3Store): Promise<boolean> {
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

export interface BucketCheck {
  name: 'put' | 'head' | 'copy' | 'delete' | 'signed put' | 'cors' | 'attached files';
  ok: boolean;
  detail: string;
  /** The next step. */
  hint: string | null;
  /** The bucket did not answer at all. */
  away?: boolean;
}

/** The page whose uploads are tried where none is named. */
export const SOME_ORIGIN = 'https://app.example';

const TYPE = 'image/png';
const BYTES = Buffer.from('bsvc checks this bucket');

const HINTS: Record<BucketCheck['name'], string> = {
  put: 'Check address, region, bucket and keys; the keys need s3:PutObject.',
  head: 'The keys need s3:GetObject, and s3:ListBucket so that a missing object can be told from a forbidden one.',
  copy: 'Confirmed uploads are copied inside the bucket: the store has to support CopyObject.',
  delete: 'The keys need s3:DeleteObject.',
  'signed put': 'The bucket refuses signed addresses: check the region and the clocks.',
  'attached files': 'The keys need s3:GetObject, and addresses without a signature have to be answered.',
  cors: 'Let browsers upload: allow PUT, GET and HEAD with the headers content-type and content-length.',
};

/**
 * Tries on small objects of its own what uploads need of a bucket; CORS as a page of `origin` meets it. Leaves nothing
 * in the bucket.
 */
export async function checkBucket(store: S3Store, origin: string): Promise<BucketCheck[]> {
  const checks = await checkAccess(store);
  if (!checks.every((check) => check.ok)) return checks;
  const key = newKey();
  checks.push(
    await attempt('signed put', async () => {
      const status = await store.sendSignedPut(key, TYPE, BYTES);
      await store.remove(key);
      return status < 300 ? 'takes the declared bytes' : fail(`answers ${status}`);
    }),
    await attempt('attached files', async () =>
      (await readsWithoutRight(store))
        ? 'are refused: anybody can read the objects of this bucket'
        : 'the objects cannot be read without a link',
    ),
    await attempt('cors', async () => {
      const { allowed, status } = await store.preflightPut(key, origin);
      return allowed
        ? `pages of ${origin} may upload`
        : fail(`pages of ${origin} may not upload (preflight: ${status})`);
    }),
  );
  return checks;
}

/** The part of checkBucket without which the bucket is of no use. Ends at the first failure. */
export async function checkAccess(store: S3Store): Promise<BucketCheck[]> {
  const key = newKey();
  const steps: [BucketCheck['name'], () => Promise<string>][] = [
    [
      'put',
      async () => {
        await store.put(key, Readable.from([BYTES]), { contentType: TYPE, attachment: false });
        return 'objects can be stored';
      },
    ],
    [
      'head',
      async () => {
        if ((await store.findSize(key)) !== BYTES.length) return fail('a stored object has another size');
        return (await store.findSize(newKey())) === null ? 'objects can be looked up' : fail('finds what is not there');
      },
    ],
    [
      'copy',
      async () => {
        const copy = newKey();
        const options = { contentType: TYPE, attachment: false, version: null };
        if (!(await store.copyVersion(key, copy, options))) return fail('does not find what it is to copy');
        await store.remove(copy);
        return 'objects can be copied';
      },
    ],
    [
      'delete',
      async () => {
        await store.remove(key);
        return (await store.findSize(key)) === null
          ? 'objects can be deleted'
          : fail('a deleted object is still there');
      },
    ],
  ];
  const checks: BucketCheck[] = [];
  for (const [name, step] of steps) {
    checks.push(await attempt(name, step));
    if (!checks.at(-1)!.ok) break;
  }
  return checks;
}

class Finding extends Error {}

function fail(text: string): never {
  throw new Finding(text);
}

async function attempt(name: BucketCheck['name'], step: () => Promise<string>): Promise<BucketCheck> {
  try {
    return { name, ok: true, detail: await step(), hint: null };
  } catch (error) {
    if (!(error instanceof AppError || error instanceof Finding)) throw error;
    const away = error instanceof AppError && error.code === 'STORAGE_UNAVAILABLE';
    return { name, ok: false, detail: error.message, hint: HINTS[name], ...(away && { away }) };
  }
}

function newKey(): string {
  return `bsvc-check/${randomUUID()}`;
}
