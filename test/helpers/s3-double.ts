import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { BucketAccess } from '../../src/platform/object-store/s3-client.js';
import { listen } from './listen.js';
import { isPresigned, verifySignature } from './sigv4.js';

export interface StoredInDouble {
  bytes: Buffer;
  contentType: string;
  disposition: string | null;
}

export interface CorsRule {
  origins: string[];
  methods: string[];
  headers: string[];
}

export interface S3Double {
  url: string;
  /** The credentials and place that the double accepts. */
  access: BucketAccess;
  objects: Map<string, StoredInDouble>;
  /** `METHOD /path` of every request, in order. */
  requests: string[];
  /** Replaces the CORS rules, as the bucket's owner may. */
  setCors(rules: CorsRule[]): void;
  /** Moves the double's clock against the real one. */
  setSkewMs(ms: number): void;
  /** Answers the next `count` requests with this status instead of doing them; 0 = breaks the connection. */
  failNext(count: number, status: number): void;
  /** From now on nobody reads an object without a signature. */
  closeBucket(): void;
  /** Runs `act` once, right before the next copy inside the bucket. */
  beforeCopy(act: () => void): void;
  /** Copies are answered as done and are not, as one store does it. */
  pretendToCopy(): void;
  /** From now on requests are taken and never answered. */
  hang(): void;
  close(): Promise<void>;
}

const BUCKET = 'uploads';
const REGION = 'eu-test-1';
const LIST_PAGE = 2;

/** The setting of the service that names this bucket, or with `bucket: ''` the account alone. */
export function s3Settings({ endpoint, region, bucket, accessKeyId, secretAccessKey, publicUrl }: Access) {
  const options = new URLSearchParams({ region, 'path-style': 'true', ...(publicUrl && { public: publicUrl }) });
  const account = [accessKeyId, secretAccessKey].map(encodeURIComponent).join(':');
  const host = endpoint!.replace(/^https?:\/\//, '');
  return { BSVC_S3_URL: `s3+http://${account}@${host}/${bucket}?${options.toString()}` };
}
type Access = Omit<BucketAccess, 'forcePathStyle' | 'publicUrl'> & { publicUrl?: string | null };

/**
 * An S3 endpoint with one bucket, in memory, which believes nobody: signatures, signed headers, expiry, body hashes and
 * lengths are all verified. Objects can be read without a signature until the bucket is closed.
 */
export async function openS3Double(): Promise<S3Double> {
  const objects = new Map<string, StoredInDouble>();
  const requests: string[] = [];
  const secrets = { accessKeyId: 'AKIADOUBLE', secretAccessKey: 'double/secret+key' };
  let cors: CorsRule[] = [];
  let skewMs = 0;
  let failing = { count: 0, status: 500 };
  let hanging = false;
  let beforeCopy = (): void => undefined;
  let pretending = false;
  let isOpen = true;

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      if (!response.headersSent) refuse(response, 500, error instanceof Error ? error.message : 'InternalError');
      response.destroy();
    });
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, 'http://double');
    requests.push(`${request.method} ${url.pathname}`);
    if (hanging) return;
    if (failing.count > 0) {
      failing.count--;
      if (failing.status === 0) return void request.socket.destroy();
      request.resume();
      return refuse(response, failing.status, failing.status === 503 ? 'SlowDown' : 'InternalError');
    }
    const rule = allowCors(request, response, cors);
    if (request.method === 'OPTIONS')
      return rule ? void response.writeHead(200).end() : refuse(response, 403, 'AccessForbidden');
    const [, bucket, ...rest] = url.pathname.split('/');
    const key = decodeURIComponent(rest.join('/'));
    if (request.method === 'GET' && !request.headers.authorization && !isPresigned(url)) {
      if (!isOpen) return refuse(response, 403, 'AccessDenied');
      const found = bucket === BUCKET ? objects.get(key) : undefined;
      return found ? send(request, response, found) : refuse(response, 404, 'NoSuchKey');
    }
    const verdict = verifySignature(request, { ...secrets, region: REGION, now: () => Date.now() + skewMs });
    if (!verdict.ok) return refuse(response, 403, verdict.code);
    if (bucket !== BUCKET) return refuse(response, 404, 'NoSuchBucket');
    const body = await readAll(request);
    if (!body) return;
    if (verdict.payloadHash !== null && verdict.payloadHash !== createHash('sha256').update(body).digest('hex'))
      return refuse(response, 400, 'XAmzContentSHA256Mismatch');
    if (key === '' && url.searchParams.has('cors') && request.method === 'PUT') {
      cors = readCors(body.toString('utf8'));
      return void response.writeHead(200).end();
    }
    if (key === '' && url.searchParams.get('list-type') === '2') return sendList(response, url.searchParams);
    if (key === '') return refuse(response, 501, 'NotImplemented');
    return onObject(request, response, key, body);
  }

  /** In pages of two, so that every client has to ask again. */
  function sendList(response: ServerResponse, query: URLSearchParams): void {
    const keys = [...objects.keys()].filter((key) => key.startsWith(query.get('prefix') ?? '')).sort();
    const from = Number(query.get('continuation-token') ?? 0);
    const isTruncated = keys.length > from + LIST_PAGE;
    const contents = keys
      .slice(from, from + LIST_PAGE)
      .map((key) => `<Contents><Key>${key}</Key><Size>${objects.get(key)!.bytes.length}</Size></Contents>`);
    const next = isTruncated ? `<NextContinuationToken>${from + LIST_PAGE}</NextContinuationToken>` : '';
    response.writeHead(200, { 'content-type': 'application/xml' });
    response.end(
      `<ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${contents.join('')}${next}</ListBucketResult>`,
    );
  }

  function onObject(request: IncomingMessage, response: ServerResponse, key: string, body: Buffer): void {
    const found = objects.get(key);
    const source = request.headers['x-amz-copy-source'];
    if (request.method === 'PUT' && source !== undefined) {
      const act = beforeCopy;
      beforeCopy = () => undefined;
      act();
      const copied = objects.get(decodeURIComponent(String(source)).replace(`${BUCKET}/`, '').replace(/^\//, ''));
      if (!copied) return refuse(response, 404, 'NoSuchKey');
      const wanted = request.headers['x-amz-copy-source-if-match'];
      if (wanted !== undefined && wanted !== etag(copied.bytes)) return refuse(response, 412, 'PreconditionFailed');
      const replaced = request.headers['x-amz-metadata-directive'] === 'REPLACE' ? readMeta(request) : copied;
      if (!pretending) objects.set(key, { ...replaced, bytes: copied.bytes });
      response.writeHead(200, { 'content-type': 'application/xml' });
      return void response.end(`<CopyObjectResult><ETag>${etag(copied.bytes)}</ETag></CopyObjectResult>`);
    }
    if (request.method === 'PUT') {
      if (request.headers['content-length'] === undefined) return refuse(response, 411, 'MissingContentLength');
      objects.set(key, { ...readMeta(request), bytes: body });
      return void response.writeHead(200, { etag: etag(body) }).end();
    }
    if (request.method === 'DELETE') {
      objects.delete(key);
      return void response.writeHead(204).end();
    }
    if (!found) return refuse(response, 404, 'NoSuchKey', request.method === 'HEAD');
    return send(request, response, found);
  }

  const { url, close } = await listen(server);
  return {
    url,
    access: {
      endpoint: url,
      region: REGION,
      bucket: BUCKET,
      ...secrets,
      publicUrl: `${url}/${BUCKET}`,
      forcePathStyle: true,
    },
    objects,
    requests,
    setCors: (rules) => void (cors = rules),
    setSkewMs: (ms) => void (skewMs = ms),
    failNext: (count, status) => void (failing = { count, status }),
    closeBucket: () => void (isOpen = false),
    beforeCopy: (act) => void (beforeCopy = act),
    pretendToCopy: () => void (pretending = true),
    hang: () => void (hanging = true),
    close,
  };
}

/** The whole body, or null when the client went away before its end: such a body is not stored. */
async function readAll(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    return null;
  }
  return request.complete ? Buffer.concat(chunks) : null;
}

function readMeta(request: IncomingMessage): Omit<StoredInDouble, 'bytes'> {
  return {
    contentType: request.headers['content-type'] ?? 'binary/octet-stream',
    disposition: request.headers['content-disposition'] ?? null,
  };
}

/** The object, or the part of it that is asked for, under the headers that a signed address asks for. */
function send(request: IncomingMessage, response: ServerResponse, found: StoredInDouble): void {
  const [part, status, range] = partOf(found.bytes, request.headers.range);
  if (!part) return refuse(response, 416, 'InvalidRange', request.method === 'HEAD');
  const cacheControl = new URL(request.url!, 'http://double').searchParams.get('response-cache-control');
  response.writeHead(status, {
    'content-type': found.contentType,
    'content-length': part.length,
    etag: etag(found.bytes),
    'accept-ranges': 'bytes',
    ...(range && { 'content-range': range }),
    ...(cacheControl && { 'cache-control': cacheControl }),
    ...(found.disposition && { 'content-disposition': found.disposition }),
  });
  response.end(request.method === 'HEAD' ? undefined : part);
}

/** Null for a range that begins behind the end. */
function partOf(bytes: Buffer, range: string | undefined): [Buffer | null, number, string | null] {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(range ?? '') ?? [];
  if (from === '' && to === '') return [bytes, 200, null];
  const start = from === '' ? Math.max(0, bytes.length - Number(to)) : Number(from);
  const end = from === '' || to === '' ? bytes.length : Math.min(bytes.length, Number(to) + 1);
  if (start >= end) return [null, 416, null];
  return [bytes.subarray(start, end), 206, `bytes ${start}-${end - 1}/${bytes.length}`];
}

function refuse(response: ServerResponse, status: number, code: string, headOnly = false): void {
  response.writeHead(status, { 'content-type': 'application/xml' });
  response.end(headOnly ? undefined : `<Error><Code>${code}</Code><Message>${code}</Message></Error>`);
}

function readCors(xml: string): CorsRule[] {
  const all = (text: string, tag: string): string[] =>
    [...text.matchAll(new RegExp(`<${tag}>([^<]*)</${tag}>`, 'g'))].map((match) => match[1]!);
  return [...xml.matchAll(/<CORSRule>(.*?)<\/CORSRule>/gs)].map((match) => ({
    origins: all(match[1]!, 'AllowedOrigin'),
    methods: all(match[1]!, 'AllowedMethod'),
    headers: all(match[1]!, 'AllowedHeader').map((name) => name.toLowerCase()),
  }));
}

function allowCors(request: IncomingMessage, response: ServerResponse, rules: CorsRule[]): CorsRule | null {
  const { origin } = request.headers;
  if (!origin) return null;
  const preflight = request.method === 'OPTIONS';
  const method = preflight ? (request.headers['access-control-request-method'] ?? '') : request.method!;
  const asked = preflight ? String(request.headers['access-control-request-headers'] ?? '') : '';
  const names = asked
    .toLowerCase()
    .split(/\s*,\s*/)
    .filter(Boolean);
  const rule = rules.find(
    ({ origins, methods, headers }) =>
      (origins.includes('*') || origins.includes(origin)) &&
      methods.includes(method) &&
      names.every((name) => headers.includes('*') || headers.includes(name)),
  );
  if (!rule) return null;
  response.setHeader('access-control-allow-origin', origin);
  if (preflight) {
    response.setHeader('access-control-allow-methods', rule.methods.join(', '));
    response.setHeader('access-control-allow-headers', names.join(', '));
  }
  return rule;
}

function etag(bytes: Buffer): string {
  return `"${createHash('md5').update(bytes).digest('hex')}"`;
}
