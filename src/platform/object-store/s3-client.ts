import { S3Client } from '@aws-sdk/client-s3';
import { openAgents, type Agents } from '../network/public-agents.js';
import { bucketError } from './s3-errors.js';

/** The address of a bucket and its credentials. */
export interface BucketAccess {
  /** null = AWS itself, found by region. */
  endpoint: string | null;
  region: string;
  bucket: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** Address under which the bucket's objects are public, or null. */
  publicUrl: string | null;
  forcePathStyle: boolean;
}

/** Of the service's own bucket, which may be reached by the role of its machine or container: without keys. */
export type OwnBucketAccess = Omit<BucketAccess, 'accessKeyId' | 'secretAccessKey'> & {
  accessKeyId: string | null;
  secretAccessKey: string | null;
};

interface ConnectionLimits {
  /** True if the endpoint may be a private address: for the operator's own bucket, not for one that a project names. */
  allowPrivate: boolean;
  maxSockets: number;
  /** Time without a byte after which a connection is given up. */
  idleMs: number;
}

const CONNECT_MS = 5_000;

const ignore = (): void => undefined;
/** The SDK would write notes to standard error; what matters is thrown. */
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** A client of a bucket, not connected yet. */
export function openS3Client(
  access: OwnBucketAccess,
  { allowPrivate, maxSockets, idleMs }: ConnectionLimits,
): { client: S3Client; agents: Agents; close: () => void } {
  const { accessKeyId, secretAccessKey } = access;
  const agents = openAgents(allowPrivate, { keepAlive: true, maxSockets });
  const client = new S3Client({
    region: access.region,
    ...(access.endpoint && { endpoint: access.endpoint }),
    forcePathStyle: access.forcePathStyle,
    // Without keys the SDK looks for a role: of a web identity, of the container, of the machine.
    ...(accessKeyId !== null && secretAccessKey !== null && { credentials: { accessKeyId, secretAccessKey } }),
    // Newer checksums are unknown to many servers that speak S3.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: 3,
    logger: SILENT,
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: idleMs, ...agents },
  });
  return {
    client,
    agents,
    close() {
      client.destroy();
      agents.httpAgent.destroy();
      agents.httpsAgent.destroy();
    },
  };
}

/** The signal that ends a call after a number of milliseconds. */
export function within(ms: number): { abortSignal: AbortSignal } {
  return { abortSignal: AbortSignal.timeout(Math.ceil(ms)) };
}

/** For `catch`: throws the trouble as 503 STORAGE_UNAVAILABLE or STORAGE_REFUSED. */
export function rethrow(error: unknown): never {
  throw bucketError(error);
}
