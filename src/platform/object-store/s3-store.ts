import { createReadStream } from 'node:fs';
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutBucketCorsCommand,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { requireObjectKey, type ObjectStore, type PutOptions } from './object-store.js';
import { sendGet, sendPreflight, sendPut, type Connection, type PreflightAnswer } from './browser-requests.js';
import { openS3Client, rethrow, within, type OwnBucketAccess } from './s3-client.js';
import { bucketError, isAbsent, isOtherVersion, isTransient } from './s3-errors.js';
import type { Spool } from './spool.js';

export interface S3StoreOptions {
  /** True if the endpoint may be a private address: for the operator's own bucket, not for one that a project names. */
  allowPrivate: boolean;
  spool: Spool;
  /** Time limit of one call, without the time that an upload's bytes take. */
  callMs?: number;
  /** Time limit of all attempts to store an object. */
  putMs?: number;
}

/** A bucket with an S3 API. */
export interface S3Store extends ObjectStore {
  readonly kind: 's3';
  /**
   * Size of the stored object, and the bucket's name for these very bytes (null when it gives none); null when there is
   * no object.
   */
  findVersion(key: string): Promise<{ size: number; version: string | null } | null>;
  /** Copies an object inside the bucket; false when it is gone or holds other bytes than `version` names. */
  copyVersion(from: string, to: string, options: PutOptions & { version: string | null }): Promise<boolean>;
  /** Replaces the bucket's CORS rules by one that lets browsers of those origins PUT and GET. */
  applyCors(origins: readonly string[]): Promise<void>;
  /** The answer a browser gets to the preflight of a PUT of `key` from `origin`. */
  preflightPut(key: string, origin: string): Promise<PreflightAnswer>;
  /** Sends bytes to a signed address as a browser does and returns the status. */
  sendSignedPut(key: string, type: string, bytes: Buffer): Promise<number>;
  /** The statuses that those get who ask for an object without a signature, at the bucket and at its public address. */
  sendUnsignedGets(key: string): Promise<number[]>;
}

const IDLE_MS = 20_000;
const CALL_MS = 20_000;
/** The slowest upload to the bucket that is waited for. */
const MIN_BYTES_PER_MS = 64;
const PUT_ATTEMPTS = 3;
/** Less than the silence after which a client that waits is cut off: it is to get an answer. */
const PUT_MS = 40_000;
const MAX_SOCKETS = 64;
/** Signed in addition to the host, so that a URL takes nothing but the declared type and length. */
const SIGNED_HEADERS = new Set(['host', 'content-type', 'content-length']);

const COPY_MISSING = { name: 'CopyMissing', $metadata: { httpStatusCode: 500 } };
const CORS_RULE = {
  // Preflights (OPTIONS) are part of every rule; S3 refuses a rule that lists them.
  AllowedMethods: ['PUT', 'GET', 'HEAD'],
  AllowedHeaders: ['content-type', 'content-length'],
  ExposeHeaders: ['ETag'],
  MaxAgeSeconds: 3600,
};

/**
 * Opens the bucket without connecting. Every call has a time limit; trouble is thrown as 503 STORAGE_UNAVAILABLE or
 * STORAGE_REFUSED.
 */
export function openS3Store(
  access: OwnBucketAccess,
  { allowPrivate, spool, callMs = CALL_MS, putMs = PUT_MS }: S3StoreOptions,
): S3Store {
  const { client, agents, close } = openS3Client(access, { allowPrivate, maxSockets: MAX_SOCKETS, idleMs: IDLE_MS });
  const Bucket = access.bucket;
  const { signPut, signGet } = openSigning(client, Bucket);

  const findVersion: S3Store['findVersion'] = async (key) => {
    try {
      const head = new HeadObjectCommand({ Bucket, Key: requireObjectKey(key) });
      const { ContentLength: size = 0, ETag: version = null } = await client.send(head, within(callMs));
      return { size, version };
    } catch (error) {
      if (isAbsent(error)) return null;
      throw bucketError(error);
    }
  };

  return {
    kind: 's3',
    async put(key, body, options) {
      const Key = requireObjectKey(key);
      // S3 wants the length before the first byte, which a stream cannot tell.
      const spooled = await spool.receive(body);
      const endMs = performance.now() + putMs;
      try {
        await repeat({ attempts: PUT_ATTEMPTS, endMs }, (leftMs) => {
          const Body = createReadStream(spooled.path);
          return client.send(
            new PutObjectCommand({ Bucket, Key, Body, ContentLength: spooled.size, ...headersOf(options) }),
            within(Math.min(leftMs, callMs + spooled.size / MIN_BYTES_PER_MS)),
          );
        });
        return spooled;
      } finally {
        await spool.discard(spooled);
      }
    },
    findSize: async (key) => (await findVersion(key))?.size ?? null,
    findVersion,
    async remove(key) {
      try {
        await client.send(new DeleteObjectCommand({ Bucket, Key: requireObjectKey(key) }), within(callMs));
      } catch (error) {
        if (!isAbsent(error)) throw bucketError(error);
      }
    },
    async copyVersion(from, to, { version, ...options }) {
      const copy = {
        Bucket,
        Key: requireObjectKey(to),
        CopySource: `${Bucket}/${requireObjectKey(from)}`,
        ...(version !== null && { CopySourceIfMatch: version }),
        MetadataDirective: 'REPLACE' as const,
        ...headersOf(options),
      };
      try {
        await client.send(new CopyObjectCommand(copy), within(callMs));
      } catch (error) {
        if (isAbsent(error) || isOtherVersion(error)) return false;
        throw bucketError(error);
      }
      // Some stores say that they have copied, and have not: the original is removed after this.
      if ((await findVersion(to)) === null) throw bucketError(COPY_MISSING);
      return true;
    },
    signPutUrl: (key, { contentType, size, expiresInMs }) =>
      signPut(requireObjectKey(key), contentType, size, Math.floor(expiresInMs / 1000)),
    signGetUrl: (key, expiresInMs) => signGet(requireObjectKey(key), Math.floor(expiresInMs / 1000)),
    publicUrl: (key) => (access.publicUrl ? `${access.publicUrl}/${requireObjectKey(key)}` : null),
    async applyCors(origins) {
      const CORSConfiguration = { CORSRules: [{ ...CORS_RULE, AllowedOrigins: [...origins] }] };
      await client.send(new PutBucketCorsCommand({ Bucket, CORSConfiguration }), within(callMs)).catch(rethrow);
    },
    ...browserCalls(access, signPut, { agents, limitMs: callMs }),
    close,
  };
}

function headersOf({ contentType, attachment }: PutOptions) {
  return { ContentType: contentType, ...(attachment && { ContentDisposition: 'attachment' }) };
}

function openSigning(client: S3Client, Bucket: string) {
  return {
    signPut: (Key: string, ContentType: string, ContentLength: number, expiresIn: number): Promise<string> =>
      getSignedUrl(client, new PutObjectCommand({ Bucket, Key, ContentType, ContentLength }), {
        expiresIn,
        signableHeaders: SIGNED_HEADERS,
      }),
    signGet: (Key: string, expiresIn: number): Promise<string> =>
      getSignedUrl(client, new GetObjectCommand({ Bucket, Key, ResponseCacheControl: 'private, max-age=300' }), {
        expiresIn,
      }),
  };
}

/** What a browser would send: so it is checked how the bucket is set up. */
function browserCalls(
  { publicUrl }: OwnBucketAccess,
  signPut: (key: string, type: string, size: number, expiresIn: number) => Promise<string>,
  connection: Connection,
): Pick<S3Store, 'preflightPut' | 'sendSignedPut' | 'sendUnsignedGets'> {
  return {
    async preflightPut(key, origin) {
      const url = await signPut(requireObjectKey(key), 'image/png', 1, 60);
      return sendPreflight(url, origin, connection).catch(rethrow);
    },
    async sendSignedPut(key, type, bytes) {
      const url = await signPut(requireObjectKey(key), type, bytes.length, 60);
      return sendPut(url, type, bytes, connection).catch(rethrow);
    },
    async sendUnsignedGets(key) {
      const unsigned = new URL(await signPut(requireObjectKey(key), 'image/png', 1, 60));
      unsigned.search = '';
      const urls = [unsigned.href, ...(publicUrl ? [`${publicUrl}/${key}`] : [])];
      return Promise.all(urls.map((url) => sendGet(url, connection).catch(rethrow)));
    },
  };
}

/**
 * The SDK does not repeat a request whose body is a stream; a file can be opened again. Each attempt is given the time
 * that is left for all of them.
 */
async function repeat(
  { attempts, endMs }: { attempts: number; endMs: number },
  send: (leftMs: number) => Promise<unknown>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await send(Math.max(1, endMs - performance.now()));
      return;
    } catch (error) {
      if (attempt >= attempts || performance.now() >= endMs || !isTransient(error)) throw bucketError(error);
    }
  }
}
