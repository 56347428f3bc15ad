import { readPackageFile } from '../../package.js';
import { GUIDES } from './guides.js';
import { publicPath } from '../../config/public-path.js';
import { missing } from '../../errors.js';
import { fileAnswers, prepareFile, servePreparedFile, type PreparedFile } from '../../http/routes/prepared-file.js';
import { naming, PUBLIC, route, type RouteContext, type RouteList } from '../../http/routes/route.js';

/** About other products: named at the end of the whole text, which stays below 200 kB. */
const APART: ReadonlySet<string> = new Set(['compare', 'moving', 'firestore', 'realm', 'instantdb', 'migration']);

const readGuide = (name: string): string => readPackageFile('templates', 'docs', `${name}.md`);

/** What bsvc is and the pages to read, for a program that knows nothing of it; links begin with `base`. */
function llmsPage(base: string): string {
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

/** Made when they are first asked for, by address. */
const pages = new Map<string, Promise<PreparedFile>>();

/** Answers with what is the same until the next version; 404 where `write` knows no such page. */
export async function servePage(
  ctx: RouteContext,
  address: string,
  write: () => string | Buffer | null,
  { type = 'text/markdown; charset=utf-8', compress = true }: { type?: string; compress?: boolean } = {},
): Promise<void> {
  let page = pages.get(address);
  if (!page) {
    const content = write();
    if (content === null) throw missing('NOT_FOUND', 'There is no such page. /llms.txt lists the pages.');
    pages.set(address, (page = prepareFile(type, content, { compress })));
  }
  servePreparedFile(ctx, await page);
}

/** The name of a page in the last part of an address; null where that ends otherwise than a page. */
const nameOf = (file: string): string | null => /^([\w-]+)\.md$/.exec(file)?.[1] ?? null;

/** The guides for programs that read text. Public: they are the same in every installation. */
export const MACHINE_ROUTES: readonly RouteList[] = [
  {
    prefix: '/llms.txt',
    tag: 'Service',
    rate: 'page',
    routes: [
      route('GET /llms.txt', {
        id: 'getLlmsPage',
        summary: 'Overview for language models',
        access: PUBLIC,
        ...fileAnswers('The page', 'text/plain'),
        handle: ({ app, ctx }) => {
          const base = publicPath(app.config);
          return servePage(ctx, `${base} llms`, () => llmsPage(base), { type: 'text/plain; charset=utf-8' });
        },
      }),
    ],
  },
  {
    prefix: '/api/docs/agents',
    tag: 'Service',
    rate: 'page',
    params: { page: naming('`SKILL.md`, `LIMITS.md` or `AGENTS.md`', 'NOT_FOUND') },
    routes: [
      route('GET /api/docs/agents/:page', {
        id: 'getAgentPage',
        summary: 'A file for coding agents',
        access: PUBLIC,
        ...fileAnswers('The file', 'text/markdown'),
        handle: ({ ctx, params: { page } }) => servePage(ctx, `agents ${page}`, () => agentPage(page)),
      }),
    ],
  },
];

/** In the list of the docs, behind the pages whose names are fixed. */
export const MARKDOWN_ROUTE = route('GET /api/docs/:page', {
  id: 'getGuideMarkdown',
  summary: 'Get one or all guides as Markdown',
  params: { page: naming('Name of a guide with `.md`, or `all.md`', 'NOT_FOUND') },
  access: PUBLIC,
  ...fileAnswers('The guide', 'text/markdown'),
  handle({ ctx, params: { page } }) {
    const name = nameOf(page);
    return servePage(ctx, `docs ${page}`, () => (name === null ? null : markdownPage(name)));
  },
});
