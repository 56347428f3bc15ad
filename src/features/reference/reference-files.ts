import type { RouteList } from '../../http/routes/route.js';
import { readPackageFile, VERSION } from '../../package.js';
import { buildApiDocument } from './api-document.js';
import { renderDocsPage } from './docs-page.js';
import { makeReferenceFile, type ReferenceFile } from './reference-file.js';

export interface ReferenceFiles {
  document: ReferenceFile;
  page: ReferenceFile;
  style: ReferenceFile;
  script: ReferenceFile;
}

/** The files that describe the API, ready to be sent. Costs some tens of milliseconds. */
export async function makeReferenceFiles(lists: readonly RouteList[]): Promise<ReferenceFiles> {
  const document = buildApiDocument(lists, VERSION);
  return {
    document: await makeReferenceFile('application/json; charset=utf-8', JSON.stringify(document)),
    page: await makeReferenceFile('text/html; charset=utf-8', renderDocsPage(document)),
    style: await makeReferenceFile('text/css; charset=utf-8', readPackageFile('templates', 'docs', 'page.css')),
    script: await makeReferenceFile('text/javascript; charset=utf-8', readPackageFile('templates', 'docs', 'page.js')),
  };
}
