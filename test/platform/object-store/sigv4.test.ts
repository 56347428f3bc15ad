import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { verifySignature, type Verdict } from '../../helpers/sigv4.js';

// The worked examples of the AWS documentation: an answer key that neither we nor the SDK made.
const EXAMPLE = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
};
const SIGNED_AT = Date.parse('2013-05-24T00:00:00Z');
const EMPTY_HASH = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

const QUERY =
  '/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404';
const HOST = { host: 'examplebucket.s3.amazonaws.com' };
const HEADERS = {
  ...HOST,
  range: 'bytes=0-9',
  'x-amz-date': '20130524T000000Z',
  'x-amz-content-sha256': EMPTY_HASH,
  authorization:
    'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
};

function judge(url: string, headers: Record<string, string>, nowMs = SIGNED_AT + 1000, method = 'GET'): Verdict {
  return verifySignature({ method, url, headers } as unknown as IncomingMessage, { ...EXAMPLE, now: () => nowMs });
}

describe('the S3 double’s judgement of signatures', () => {
  it('accepts the documented query form', () => {
    expect(judge(QUERY, HOST)).toEqual({ ok: true, payloadHash: null });
  });

  it('accepts the documented header form', () => {
    expect(judge('/test.txt', HEADERS)).toEqual({ ok: true, payloadHash: EMPTY_HASH });
  });

  it.each<[string, () => Verdict, string]>([
    ['another path', () => judge(QUERY.replace('test', 'best'), HOST), 'SignatureDoesNotMatch'],
    ['another method', () => judge(QUERY, HOST, SIGNED_AT, 'PUT'), 'SignatureDoesNotMatch'],
    ['another host', () => judge(QUERY, { host: 'other.s3.amazonaws.com' }), 'SignatureDoesNotMatch'],
    ['a longer life', () => judge(QUERY.replace('86400', '86401'), HOST), 'SignatureDoesNotMatch'],
    ['one digit changed', () => judge(QUERY.replace(/4$/, '5'), HOST), 'SignatureDoesNotMatch'],
    ['an expired query', () => judge(QUERY, HOST, SIGNED_AT + 86_400_000), 'AccessDenied'],
    ['a query from the future', () => judge(QUERY, HOST, SIGNED_AT - 16 * 60_000), 'AccessDenied'],
    ['another signed header', () => judge('/test.txt', { ...HEADERS, range: 'bytes=0-8' }), 'SignatureDoesNotMatch'],
    ['an unsigned x-amz- header', () => judge('/test.txt', { ...HEADERS, 'x-amz-acl': 'x' }), 'SignatureDoesNotMatch'],
    ['a wrong clock', () => judge('/test.txt', HEADERS, SIGNED_AT + 16 * 60_000), 'RequestTimeTooSkewed'],
    ['an unknown key', () => judge(QUERY.replace('AKIAI', 'AKIAX'), HOST), 'InvalidAccessKeyId'],
    ['no signature', () => judge('/test.txt', HOST), 'AccessDenied'],
  ])('refuses %s', (_what, verdict, code) => {
    expect(verdict()).toEqual({ ok: false, code });
  });
});
