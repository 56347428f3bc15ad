import { missing } from '../../errors.js';
import { naming, own, parameter, PUBLIC, route, type RouteList } from '../../http/routes/route.js';
import { TEXT } from '../../platform/schema/schema.js';
import { GUIDES, GUIDES_PREFIX, renderGuide } from './guides.js';
import { makeReferenceFile, serveReferenceFile, type ReferenceFile } from './reference-file.js';

/** Made when they are first asked for. */
const pages = new Map<string, Promise<ReferenceFile>>();

function findPage(name: string): Promise<ReferenceFile> | null {
  const made = pages.get(name);
  if (made) return made;
  const html = renderGuide(name);
  if (html === null) return null;
  const page = makeReferenceFile('text/html; charset=utf-8', html);
  pages.set(name, page);
  return page;
}

const getGuideRoute = route({
  method: 'GET',
  path: '/api/docs/guides/:guide',
  id: 'getGuide',
  summary: 'A guide as a page to read',
  access: PUBLIC,
  headers: { 'if-none-match': parameter('`ETag` of a copy', TEXT) },
  answers: [
    own(200, 'The page', { 'text/html': TEXT }, { ETag: 'Changes with the content' }),
    own(304, 'The copy is good'),
  ],
  async handle({ ctx, params }) {
    const page = findPage(params.guide);
    if (!page) {
      const names = GUIDES.map(({ name }) => name).join(', ');
      throw missing('NOT_FOUND', `There is no guide of this name. Guides: ${names}`);
    }
    serveReferenceFile(ctx, await page);
  },
});

/** The guides of templates/docs. Open to everybody: they say nothing that is not the same in every installation. */
export const GUIDE_ROUTES: RouteList = {
  prefix: GUIDES_PREFIX,
  tag: 'Service',
  params: { guide: naming('Name of the guide', 'NOT_FOUND') },
  routes: [getGuideRoute],
};
