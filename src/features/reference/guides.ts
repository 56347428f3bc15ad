import { readPackageFile, VERSION } from '../../package.js';
import { escapeHtml, renderPage } from './html.js';
import { renderMarkdown } from './markdown.js';

export const GUIDES_PREFIX = '/api/docs/guides';

/** The guides in the order in which a reader meets them; each is a file of Markdown in templates/docs. */
export const GUIDES = [
  { name: 'getting-started', title: 'Getting started' },
  { name: 'first-app', title: 'Your first app' },
  { name: 'client', title: 'Client' },
  { name: 'react', title: 'React, Next.js, React Native' },
  { name: 'rest', title: 'REST guide by task' },
  { name: 'writing', title: 'Writing: count, append, all or nothing' },
  { name: 'rules', title: 'Rules and security' },
  { name: 'sign-in', title: 'Ways to sign in' },
  { name: 'own-server', title: 'Your own server' },
  { name: 'files', title: 'Files and buckets' },
  { name: 'mail', title: 'Mail' },
  { name: 'webhooks', title: 'Webhooks' },
  { name: 'own-code', title: 'Own code' },
  { name: 'console', title: 'Console' },
  { name: 'declaration', title: 'One file for a project' },
  { name: 'commands', title: 'Command line' },
  { name: 'settings', title: 'Settings' },
  { name: 'backup', title: 'Backup and upgrade' },
  { name: 'proxy', title: 'Deploy and HTTPS' },
  { name: 'scale', title: 'One machine to many' },
  { name: 'mongodb', title: 'MongoDB' },
  { name: 'mongodb-for-tests', title: 'A MongoDB for tests' },
  { name: 'telemetry', title: 'Telemetry' },
  { name: 'limits', title: 'Limits' },
  { name: 'compare', title: 'Compare' },
  { name: 'moving', title: 'Moving from another service' },
  { name: 'migration', title: 'Migration from the hosted service' },
  { name: 'troubleshooting', title: 'Troubleshooting' },
] as const;

/** Links to all guides, the one that is shown marked. `base` is the path before /api, empty at the root. */
export function renderGuideLinks(base: string, shown?: string): string {
  const items = GUIDES.map(({ name, title }) => {
    const mark = name === shown ? ' aria-current="page"' : '';
    return `<li><a href="${base}${GUIDES_PREFIX}/${name}"${mark}>${escapeHtml(title)}</a></li>`;
  });
  return `<ul>\n${items.join('\n')}\n</ul>`;
}

/** A guide as a page of HTML; null for a name that no guide has. `base` is the path before /api, empty at the root. */
export function renderGuide(base: string, name: string): string | null {
  const guide = GUIDES.find((each) => each.name === name);
  if (!guide) return null;
  const text = readPackageFile('templates', 'docs', `${name}.md`);
  return renderPage({
    base,
    title: `${guide.title} · bsvc`,
    brand: `<a href="${base}/api/docs">bsvc <span>guides</span></a> <small>${escapeHtml(VERSION)}</small>`,
    link: { to: '/api/docs', text: 'API reference' },
    navigation: `<nav aria-label="Guides"><details open><summary>Guides</summary>
${renderGuideLinks(base, name)}
</details></nav>`,
    content: `<article>
${renderMarkdown(text, (target) => linkInPage(base, target))}
</article>`,
    kind: 'guide',
  });
}

/** Guides refer to each other by file, as the repository shows them. */
function linkInPage(base: string, target: string): string {
  const guide = /^([\w-]+)\.md(#.*)?$/.exec(target);
  return guide ? `${base}${GUIDES_PREFIX}/${guide[1]}${guide[2] ?? ''}` : target;
}
