import { publicPath } from '../../config/public-path.js';
import { isOpenedByBrowser, replyPage } from '../../http/replies/plain-page.js';
import { own, route, type Access, type RouteList } from '../../http/routes/route.js';
import { object, TEXT } from '../../platform/schema/schema.js';
import { VERSION } from '../../package.js';

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
          ctx.body = { service: 'bsvc', version: VERSION, docs, openapi, health };
        }
      },
    }),
  ],
};
