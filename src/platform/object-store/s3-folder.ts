import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { DeleteObjectCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import { openS3Client, rethrow, within, type OwnBucketAccess } from './s3-client.js';
import { bucketError, isAbsent } from './s3-errors.js';

/** Whole files below one prefix of a bucket. Errors are thrown as 503 STORAGE_UNAVAILABLE or STORAGE_REFUSED. */
export interface S3Folder {
  list(): Promise<{ name: string; bytes: number }[]>;
  /** One PUT: at most 5 GiB. */
  put(name: string, path: string): Promise<void>;
  /** Null when there is no such object. The bytes end with an error where the bucket is too slow. */
  read(name: string): Promise<{ bytes: number; body: Readable } | null>;
  remove(name: string): Promise<void>;
  close(): void;
}

const IDLE_MS = 60_000;
const CALL_MS = 30_000;
/** The slowest line that is waited for. */
const MIN_BYTES_PER_MS = 64;

/**
 * Opens the folder without connecting; the endpoint may be a private address, since the service's own settings name it.
 */
export function openS3Folder(access: OwnBucketAccess, prefix: string): S3Folder {
  const { client, close } = openS3Client(access, { allowPrivate: true, maxSockets: 4, idleMs: IDLE_MS });
  const Bucket = access.bucket;
  const keyOf = (name: string): string => (prefix ? `${prefix}/${name}` : name);
  const inTime = (bytes = 0) => within(CALL_MS + bytes / MIN_BYTES_PER_MS);

  return {
    async list() {
      const found: { name: string; bytes: number }[] = [];
      const Prefix = keyOf('');
      let ContinuationToken: string | undefined;
      do {
        const page = await client
          .send(new ListObjectsV2Command({ Bucket, Prefix, ContinuationToken }), inTime())
          .catch(rethrow);
        for (const { Key = '', Size = 0 } of page.Contents ?? []) {
          found.push({ name: Key.slice(Prefix.length), bytes: Size });
        }
        ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined;
      } while (ContinuationToken !== undefined);
      return found;
    },
    async put(name, path) {
      const { size } = await stat(path);
      const put = new PutObjectCommand({
        Bucket,
        Key: keyOf(name),
        Body: createReadStream(path),
        ContentLength: size,
        ContentType: 'application/octet-stream',
      });
      await client.send(put, inTime(size)).catch(rethrow);
    },
    async read(name) {
      try {
        const { Body, ContentLength = 0 } = await client.send(
          new GetObjectCommand({ Bucket, Key: keyOf(name) }),
          inTime(),
        );
        const { abortSignal } = inTime(ContentLength);
        return { bytes: ContentLength, body: addAbortSignal(abortSignal, Body as Readable) };
      } catch (error) {
        if (isAbsent(error)) return null;
        throw bucketError(error);
      }
    },
    async remove(name) {
      await client.send(new DeleteObjectCommand({ Bucket, Key: keyOf(name) }), inTime()).catch(rethrow);
    },
    close,
  };
}
