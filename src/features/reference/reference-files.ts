import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { VERSION } from '../../version.js';
import { buildApiDocument } from './api-document.js';
import { DESCRIBED_GROUPS } from './described-groups.js';
import { renderDocsPage } from './docs-page.js';

const compress = promisify(gzip);

export interface ReferenceFile {
  type: string;
  bytes: Buffer;
  gzipped: Buffer;
  /** Quoted, as in the header. */
  etag: string;
}

export interface ReferenceFiles {
  document: ReferenceFile;
  page: ReferenceFile;
  style: ReferenceFile;
  script: ReferenceFile;
}

/** The files that describe the API, ready to be sent. Costs some tens of milliseconds. */
export async function makeReferenceFiles(): Promise<ReferenceFiles> {
  const document = buildApiDocument(DESCRIBED_GROUPS, VERSION);
  return {
    document: await makeFile('application/json; charset=utf-8', JSON.stringify(document)),
    page: await makeFile('text/html; charset=utf-8', renderDocsPage(document)),
    style: await makeFile('text/css; charset=utf-8', readTemplate('page.css')),
    script: await makeFile('text/javascript; charset=utf-8', readTemplate('page.js')),
  };
}

async function makeFile(type: string, text: string): Promise<ReferenceFile> {
  const bytes = Buffer.from(text);
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`;
  return { type, bytes, gzipped: await compress(bytes), etag };
}

/** Templates lie beside `dist/` when built and beside `src/` when not. */
function readTemplate(name: string): string {
  for (const root of ['../../../templates', '../../../../templates']) {
    try {
      return readFileSync(new URL(`${root}/docs/${name}`, import.meta.url), 'utf8');
    } catch {
      continue;
    }
  }
  throw new Error(`templates/docs/${name} is missing from the installation`);
}
