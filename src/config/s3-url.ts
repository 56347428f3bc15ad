import { httpUrl, trueOrFalse, type SettingReader } from './setting-readers.js';

/** An account at an S3 service, with the bucket for uploads if one is named. */
export interface S3Account {
  /** Null for AWS, which has an address for each region. */
  endpoint: string | null;
  region: string;
  bucket: string | null;
  /** Both null: the role of this machine or container, or what else the SDK of AWS finds in its environment. */
  accessKeyId: string | null;
  secretAccessKey: string | null;
  publicUrl: string | null;
  forcePathStyle: boolean;
}

const AWS = 's3.amazonaws.com';
const FORM =
  'must be s3://key:secret@host/bucket?region=…, with %2F for a / in the secret, or without key and secret for the role of this machine; s3+http:// for a host without TLS';
const OPTIONS = ['region', 'public', 'path-style'];

/**
 * Reads `s3://key:secret@host/bucket?region=…&public=https://…&path-style=true`. The bucket may be missing: an account
 * for backups only. So may key and secret, but not one of them.
 */
export const s3Url: SettingReader<S3Account> = (value) => {
  const url = /^s3(\+http)?:\/\//.test(value) && URL.canParse(value) ? new URL(value) : null;
  if (!url || !url.host || (url.username === '') !== (url.password === '')) throw new Error(FORM);
  const unknown = [...url.searchParams.keys()].find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) throw new Error(`has the option ${unknown}, which is none of ${OPTIONS.join(', ')}`);
  const bucket = url.pathname.replace(/^\/|\/$/g, '');
  if (bucket.includes('/')) throw new Error(FORM);
  const publicUrl = url.searchParams.get('public');
  return {
    endpoint: url.host === AWS ? null : `${url.protocol === 's3+http:' ? 'http' : 'https'}://${url.host}`,
    region: url.searchParams.get('region') ?? 'us-east-1',
    bucket: bucket === '' ? null : bucket,
    accessKeyId: decode(url.username) || null,
    secretAccessKey: decode(url.password) || null,
    publicUrl: publicUrl === null ? null : httpUrl(publicUrl),
    forcePathStyle: trueOrFalse(url.searchParams.get('path-style') ?? 'false'),
  };
};

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(FORM);
  }
}
