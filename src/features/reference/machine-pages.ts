import { readPackageFile } from '../../package.js';
import { GUIDES } from './guides.js';

/** About other products: named at the end of the whole text, which stays below 200 kB. */
const APART: ReadonlySet<string> = new Set(['compare', 'moving', 'firestore', 'realm', 'instantdb', 'migration']);

const readGuide = (name: string): string => readPackageFile('templates', 'docs', `${name}.md`);

/** What bsvc is and the pages to read, for a program that knows nothing of it; links begin with `base`. */
export function llmsPage(base: string): string {
  return readPackageFile('templates', 'agents', 'llms.txt').replaceAll('](/', `](${base}/`);
}

/** A guide, or `all` of them, as the Markdown that the pages are made of; null for a name that there is not. */
export function markdownPage(name: string): string | null {
  if (name === 'all') return allGuides();
  return GUIDES.some((guide) => guide.name === name) ? readGuide(name) : null;
}

function allGuides(): string {
  const [own, apart] = [GUIDES.filter(({ name }) => !APART.has(name)), GUIDES.filter(({ name }) => APART.has(name))];
  const others = apart.map(({ name, title }) => `- [${title}](${name}.md)`);
  return [...own.map(({ name }) => readGuide(name)), `# Pages of their own\n\n${others.join('\n')}\n`].join('\n');
}

/** A file for coding agents: `SKILL.md`, `LIMITS.md`, the section of `AGENTS.md`; null for any other name. */
export function agentPage(name: string): string | null {
  // Read outside the service too, where no other guide lies beside it.
  if (name === 'LIMITS.md') return readGuide('limits').replace(/\]\(([\w-]+\.md)/g, '](/api/docs/$1');
  return name === 'SKILL.md' || name === 'AGENTS.md' ? readPackageFile('templates', 'agents', name) : null;
}
