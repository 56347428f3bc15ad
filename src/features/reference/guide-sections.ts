import { readPackageFile } from '../../package.js';
import { GUIDES } from './guides.js';
import { headingId } from './markdown.js';

/** What a search of the guides looks through: the text below one heading. */
export interface GuideSection {
  /** The guide's name and, but for its beginning, the heading's id: `rules#whose-data-is-it`. */
  address: string;
  guide: string;
  heading: string;
  /** On one line, without the marks of Markdown. */
  text: string;
}

/** All guides by heading, in their order. */
export function listGuideSections(): GuideSection[] {
  return GUIDES.flatMap(({ name, title }) => {
    const sections: GuideSection[] = [{ address: name, guide: title, heading: title, text: '' }];
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
