import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { VERSION } from '../../version.js';
import { buildApiDocument } from './api-document.js';
import { DESCRIBED_GROUPS } from './described-groups.js';

export interface ReferenceFile {
  type: string;
  bytes: Buffer;
  gzipped: Buffer;
  /** Quoted, as in the header. */
  etag: string;
}

export interface ReferenceFiles {
  document: ReferenceFile;
}

/** Everything that describes the API, ready to be sent. Costs some tens of milliseconds. */
export function makeReferenceFiles(): ReferenceFiles {
  const document = buildApiDocument(DESCRIBED_GROUPS, VERSION);
  return {
    document: makeFile('application/json; charset=utf-8', JSON.stringify(document)),
  };
}

function makeFile(type: string, text: string): ReferenceFile {
  const bytes = Buffer.from(text);
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`;
  return { type, bytes, gzipped: gzipSync(bytes), etag };
}
