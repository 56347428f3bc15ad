import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Credentials and clock that a request's AWS Signature Version 4 is judged by. */
export interface Verifier {
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
  now(): number;
}

/** Why a request is refused: S3's error code. */
export type Refusal =
  | 'AccessDenied'
  | 'AuthorizationHeaderMalformed'
  | 'AuthorizationQueryParametersError'
  | 'InvalidAccessKeyId'
  | 'RequestTimeTooSkewed'
  | 'SignatureDoesNotMatch';

/** `payloadHash`: what the body must hash to; null when the signature leaves the body open. */
export type Verdict = { ok: true; payloadHash: string | null } | { ok: false; code: Refusal };

const MAX_SKEW_MS = 15 * 60_000;
const MAX_EXPIRY_SECONDS = 7 * 24 * 3600;

interface Claim {
  credential: string;
  date: string;
  signedHeaders: string[];
  signature: string;
  payloadHash: string;
}

export function isPresigned(url: URL): boolean {
  return url.searchParams.has('X-Amz-Signature');
}

/** Judges the signature in the query or in the Authorization header; nothing else about the request. */
export function verifySignature(request: IncomingMessage, verifier: Verifier): Verdict {
  const url = new URL(request.url!, 'http://double');
  const claim = isPresigned(url) ? readQuery(url, verifier.now()) : readHeader(request, verifier.now());
  if (typeof claim === 'string') return { ok: false, code: claim };
  const [keyId, day, region, service, terminator] = claim.credential.split('/');
  if (keyId !== verifier.accessKeyId) return { ok: false, code: 'InvalidAccessKeyId' };
  if (day !== claim.date.slice(0, 8) || region !== verifier.region || service !== 's3' || terminator !== 'aws4_request')
    return { ok: false, code: 'AuthorizationHeaderMalformed' };
  if (!coversWhatItMust(request, claim)) return { ok: false, code: 'SignatureDoesNotMatch' };
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', claim.date, scope, sha256(canonicalRequest(request, url, claim))].join('\n');
  const key = ['s3', 'aws4_request'].reduce(
    (parent, part) => hmac(parent, part),
    hmac(hmac(`AWS4${verifier.secretAccessKey}`, day), region),
  );
  const expected = hmac(key, text).toString('hex');
  const same =
    claim.signature.length === expected.length && timingSafeEqual(Buffer.from(claim.signature), Buffer.from(expected));
  if (!same) return { ok: false, code: 'SignatureDoesNotMatch' };
  return { ok: true, payloadHash: claim.payloadHash === 'UNSIGNED-PAYLOAD' ? null : claim.payloadHash };
}

function readQuery(url: URL, nowMs: number): Claim | Refusal {
  const get = (name: string): string => url.searchParams.get(name) ?? '';
  const expires = Number(get('X-Amz-Expires'));
  const signedAt = readDate(get('X-Amz-Date'));
  if (get('X-Amz-Algorithm') !== 'AWS4-HMAC-SHA256' || signedAt === null) return 'AuthorizationQueryParametersError';
  if (!Number.isInteger(expires) || expires < 1 || expires > MAX_EXPIRY_SECONDS)
    return 'AuthorizationQueryParametersError';
  if (nowMs < signedAt - MAX_SKEW_MS || nowMs >= signedAt + expires * 1000) return 'AccessDenied';
  return {
    credential: get('X-Amz-Credential'),
    date: get('X-Amz-Date'),
    signedHeaders: get('X-Amz-SignedHeaders').split(';'),
    signature: get('X-Amz-Signature'),
    payloadHash: 'UNSIGNED-PAYLOAD',
  };
}

function readHeader(request: IncomingMessage, nowMs: number): Claim | Refusal {
  const parts = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]+)$/.exec(
    request.headers.authorization ?? '',
  );
  if (!request.headers.authorization) return 'AccessDenied';
  const date = headerText(request, 'x-amz-date');
  const signedAt = readDate(date);
  if (!parts || signedAt === null) return 'AuthorizationHeaderMalformed';
  if (Math.abs(nowMs - signedAt) > MAX_SKEW_MS) return 'RequestTimeTooSkewed';
  return {
    credential: parts[1]!,
    date,
    signedHeaders: parts[2]!.split(';'),
    signature: parts[3]!,
    payloadHash: headerText(request, 'x-amz-content-sha256'),
  };
}

/** The host and every `x-amz-` header must be signed, else they could be exchanged. */
function coversWhatItMust(request: IncomingMessage, { signedHeaders }: Claim): boolean {
  const amz = Object.keys(request.headers).filter((name) => name.startsWith('x-amz-'));
  return ['host', ...amz].every((name) => signedHeaders.includes(name));
}

function canonicalRequest(request: IncomingMessage, url: URL, claim: Claim): string {
  const query = [...url.searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [encode(name), encode(value)] as const)
    .sort(([a, x], [b, y]) => (a === b ? compare(x, y) : compare(a, b)))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
  const headers = claim.signedHeaders.map((name) => `${name}:${headerText(request, name)}\n`).join('');
  return [request.method, url.pathname, query, headers, claim.signedHeaders.join(';'), claim.payloadHash].join('\n');
}

function headerText(request: IncomingMessage, name: string): string {
  return String(request.headers[name] ?? '')
    .trim()
    .replace(/\s+/g, ' ');
}

function readDate(text: string): number | null {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  return parts ? Date.parse(`${parts[1]}-${parts[2]}-${parts[3]}T${parts[4]}:${parts[5]}:${parts[6]}Z`) : null;
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
