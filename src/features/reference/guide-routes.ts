import { publicPath } from '../../config/public-path.js';
import { missing } from '../../errors.js';
import { naming, PUBLIC, route, type RouteList } from '../../http/routes/route.js';
import { markdownPage } from './machine-pages.js';
import { servePage } from './machine-routes.js';
import { GUIDES, GUIDES_PREFIX, renderGuide } from './guides.js';
import { fileAnswers, prepareFile, servePreparedFile, type PreparedFile } from '../../http/routes/prepared-file.js';

/** Made when they are first asked for, by address. */
const pages = new Map<string, Promise<PreparedFile>>();

function findPage(base: string, name: string): Promise<PreparedFile> | null {
  const address = `${base}/${name}`;
  const made = pages.get(address);
  if (made) return made;
  const html = renderGuide(base, name);
  if (html === null) return null;
  const page = prepareFile('text/html; charset=utf-8', html);
  pages.set(address, page);
  return page;
}

/** The guides of templates/docs. Public: they are the same in every installation. */
export const GUIDE_ROUTES: RouteList = {
  prefix: GUIDES_PREFIX,
  tag: 'Service',
  rate: 'page',
  params: { guide: naming('Name of the guide', 'NOT_FOUND') },
  routes: [
    route('GET /api/docs/guides/:guide', {
      id: 'getGuide',
      summary: 'Get a guide as a page',
      access: PUBLIC,
      ...fileAnswers('The page, or its Markdown where `Accept` prefers that', ['text/html', 'text/markdown']),
      async handle({ app, ctx, params }) {
        ctx.vary('Accept');
        if (ctx.accepts('text/html', 'text/markdown') === 'text/markdown') {
          return servePage(ctx, `docs ${params.guide}.md`, () => markdownPage(params.guide));
        }
        const page = findPage(publicPath(app.config), params.guide);
        if (!page) {
          const names = GUIDES.map(({ name }) => name).join(', ');
          throw missing('NOT_FOUND', `There is no guide of this name. Guides: ${names}`);
        }
        servePreparedFile(ctx, await page);
      },
    }),
  ],
};
