import { publicPath } from '../../config/public-path.js';
import { missing } from '../../errors.js';
import { fileAnswers, prepareFile, servePreparedFile, type PreparedFile } from '../../http/routes/prepared-file.js';
import { naming, PUBLIC, route, type RouteContext, type RouteList } from '../../http/routes/route.js';
import { agentPage, llmsPage, markdownPage } from './machine-pages.js';

/** Made when they are first asked for, by address. */
const pages = new Map<string, Promise<PreparedFile>>();

/** Answers with a text that is the same until the next version; 404 where `write` knows no such page. */
export async function servePage(
  ctx: RouteContext,
  address: string,
  write: () => string | null,
  type = 'text/markdown; charset=utf-8',
): Promise<void> {
  let page = pages.get(address);
  if (!page) {
    const text = write();
    if (text === null) throw missing('NOT_FOUND', 'There is no such page. /llms.txt lists the pages.');
    pages.set(address, (page = prepareFile(type, text)));
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
          return servePage(ctx, `${base} llms`, () => llmsPage(base), 'text/plain; charset=utf-8');
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
