import { publicPath } from '../../config/public-path.js';
import { missing } from '../../errors.js';
import { naming, PUBLIC, route, type RouteList, own, type Access } from '../../http/routes/route.js';
import { markdownPage, servePage } from './machine-routes.js';
import { GUIDES, GUIDES_PREFIX, renderGuide } from './guides.js';
import { fileAnswers } from '../../http/routes/prepared-file.js';
import { isOpenedByBrowser, replyPage } from '../../http/replies/plain-page.js';
import { replyJson } from '../../http/replies/reply.js';
import { object, TEXT } from '../../platform/schema/schema.js';
import { VERSION } from '../../package.js';

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
        const base = publicPath(app.config);
        const write = (): string => {
          const page = renderGuide(base, params.guide);
          if (page !== null) return page;
          const names = GUIDES.map(({ name }) => name).join(', ');
          throw missing('NOT_FOUND', `There is no guide of this name. Guides: ${names}`);
        };
        return servePage(ctx, `guide ${base} ${params.guide}`, write, { type: 'text/html; charset=utf-8' });
      },
    }),
  ],
};

const EVERYBODY: Access = { note: 'No authentication.', security: [], errors: {} };

const listPlaces = (
  base: string,
  console: boolean,
): string => `      <p>This is the API of a backend. An application talks to it under <code>/api</code>, with a project’s key.</p>
      <ul>
        <li><a href="${base}/api/docs/guides/getting-started">Getting started</a>, then <a href="${base}/api/docs/guides/first-app">your first app</a></li>
        <li><a href="${base}/api/docs">Every operation of the API</a>, to be tried in the browser, and all guides</li>
        <li><a href="${base}/api/openapi.json">The same as an OpenAPI document</a>, for generators of clients</li>
        ${console ? `<li><a href="${base}/console/">Console</a>, for operators of this service</li>` : ''}
        <li><a href="${base}/api/health">Health</a></li>
      </ul>
      <p>Projects, keys and collections are made with the command <code>bsvc</code>; <code>bsvc --help</code> lists what it can do.</p>`;

/** The address that `bsvc serve` prints, as a browser opens it. */
export const ROOT_ROUTES: RouteList = {
  prefix: '/',
  tag: 'Service',
  rate: 'page',
  routes: [
    route('GET /', {
      id: 'getRoot',
      summary: 'Start page',
      description: 'HTML for browsers, JSON otherwise.',
      access: EVERYBODY,
      answers: own(200, 'Where to go', {
        'text/html': TEXT,
        'application/json': object({ service: TEXT, version: TEXT, docs: TEXT, openapi: TEXT, health: TEXT }),
      }),
      handle({ app, ctx }) {
        const base = publicPath(app.config);
        if (isOpenedByBrowser(ctx)) {
          replyPage(ctx, base, { title: 'bsvc is running', content: listPlaces(base, app.config.console) });
        } else {
          const [docs, openapi, health] = ['docs', 'openapi.json', 'health'].map((name) => `${base}/api/${name}`);
          replyJson(ctx, { service: 'bsvc', version: VERSION, docs, openapi, health });
        }
      },
    }),
  ],
};
