import type { RouteList } from '../../http/routes/route.js';
import { readPackageFile, VERSION } from '../../package.js';
import { buildApiDocument } from './api-document.js';
import { writeTag } from './compact-document.js';
import { renderDocsPage, type DocsPageName } from './docs-page.js';
import { prepareFile, type PreparedFile } from '../../http/routes/prepared-file.js';
import { GUIDES } from './guides.js';
import { headingId } from './markdown.js';

export interface ReferenceFiles {
  document: PreparedFile;
  /** The operations of one tag in short; 404 for an unknown one. */
  ofTag: (tag: string) => Promise<PreparedFile>;
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
  const tags = new Map<string, Promise<PreparedFile>>();
  const ofTag = (tag: string): Promise<PreparedFile> => {
    const made = tags.get(tag) ?? prepareFile('application/json; charset=utf-8', writeTag(document, tag));
    tags.set(tag, made);
    return made;
  };
  return {
    ofTag,
    document: await prepareFile('application/json; charset=utf-8', JSON.stringify(document)),
    pages: { applications: await preparePage('applications'), operators: await preparePage('operators') },
    style: await prepareFile('text/css; charset=utf-8', readPackageFile('templates', 'docs', 'page.css')),
    script: await prepareFile('text/javascript; charset=utf-8', readPackageFile('templates', 'docs', 'page.js')),
    sections: await prepareFile('application/json; charset=utf-8', JSON.stringify(listGuideSections())),
  };
}

/** What a search of the guides looks through: the text below one heading. */
export interface GuideSection {
  /** The guide's name and, but for its beginning, the heading's id: `rules#whose-data-is-it`. */
  address: string;
  guide: string;
  heading: string;
  /** On one line, without the marks of Markdown. */
  text: string;
  /** At the beginning of a guide: what readers call its subject, which they find it first for. */
  words?: string[];
}

/** All guides by heading, in their order. */
function listGuideSections(): GuideSection[] {
  return GUIDES.flatMap(({ name, title, words }) => {
    const sections: GuideSection[] = [
      { address: name, guide: title, heading: title, text: '', words: words.split(', ') },
    ];
    let isCode = false;
    for (const line of readPackageFile('templates', 'docs', `${name}.md`).split('\n')) {
      if (line.startsWith('```')) isCode = !isCode;
      const [, marks, heading] = (!isCode && /^(#{1,3}) (.+)$/.exec(line)) || [];
      if (heading === undefined) {
        sections.at(-1)!.text += ` ${line}`;
      } else if (marks !== '#') {
        sections.push({
          address: `${name}#${headingId(heading)}`,
          guide: title,
          heading: plainText(heading),
          text: '',
        });
      }
    }
    return sections.map((section) => ({ ...section, text: plainText(section.text) }));
  });
}

function plainText(markdown: string): string {
  return markdown
    .replace(/<!--.*?-->|```\w*|[*`|]|^#+ /g, ' ')
    .replace(/\[([^\]]+)\]\([^)\s]+\)/g, '$1')
    .replace(/\s+/g, ' ')
    .trim();
}
