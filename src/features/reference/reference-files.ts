import type { RouteList } from '../../http/routes/route.js';
import { readPackageFile, VERSION } from '../../package.js';
import { buildApiDocument } from './api-document.js';
import { renderDocsPage, type DocsPageName } from './docs-page.js';
import { listGuideSections } from './guide-sections.js';
import { prepareFile, type PreparedFile } from '../../http/routes/prepared-file.js';

export interface ReferenceFiles {
  document: PreparedFile;
  pages: Record<DocsPageName, PreparedFile>;
  style: PreparedFile;
  script: PreparedFile;
  /** What a search of the guides looks through. */
  sections: PreparedFile;
}

/** The files that describe the API under the path `base`, ready to be sent. Costs some tens of milliseconds. */
export async function makeReferenceFiles(lists: readonly RouteList[], base: string): Promise<ReferenceFiles> {
  const document = buildApiDocument(lists, VERSION, base);
  const preparePage = (page: DocsPageName): Promise<PreparedFile> =>
    prepareFile('text/html; charset=utf-8', renderDocsPage(document, base, page));
  return {
    document: await prepareFile('application/json; charset=utf-8', JSON.stringify(document)),
    pages: { applications: await preparePage('applications'), operators: await preparePage('operators') },
    style: await prepareFile('text/css; charset=utf-8', readPackageFile('templates', 'docs', 'page.css')),
    script: await prepareFile('text/javascript; charset=utf-8', readPackageFile('templates', 'docs', 'page.js')),
    sections: await prepareFile('application/json; charset=utf-8', JSON.stringify(listGuideSections())),
  };
}
