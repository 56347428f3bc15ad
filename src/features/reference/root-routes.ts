import { publicPath } from '../../config/public-path.js';
import { own, route, type Access, type RouteList } from '../../http/routes/route.js';
import { object, TEXT } from '../../platform/schema/schema.js';
import { VERSION } from '../../package.js';

/** The page may load the style of the docs and nothing else. */
const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const EVERYBODY: Access = { note: 'Open to everybody.', security: [], refuses: {} };

const presentPage = (base: string, console: boolean): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>bsvc</title>
    <link rel="stylesheet" href="${base}/api/docs/page.css">
  </head>
  <body class="alone">
    <main>
      <h1>bsvc is running</h1>
      <p>This is the API of a backend. An application talks to it under <code>/api</code>, with a project’s key.</p>
      <ul>
        <li><a href="${base}/api/docs/guides/getting-started">Getting started</a>, then <a href="${base}/api/docs/guides/first-app">your first app</a></li>
        <li><a href="${base}/api/docs">Every operation of the API</a>, to be tried in the browser, and all guides</li>
        <li><a href="${base}/api/openapi.json">The same as an OpenAPI document</a>, for generators of clients</li>
        ${console ? `<li><a href="${base}/console/">Console</a>, for operators of this service</li>` : ''}
        <li><a href="${base}/api/health">Health</a></li>
      </ul>
      <p>Projects, keys and collections are made with the command <code>bsvc</code>; <code>bsvc --help</code> lists what it can do.</p>
    </main>
  </body>
</html>
`;

/** The address that `bsvc serve` prints, as a browser opens it. */
export const ROOT_ROUTES: RouteList = {
  prefix: '/',
  tag: 'Service',
  rate: 'free',
  routes: [
    route('GET /', {
      id: 'getRoot',
      summary: 'Where to go from here',
      description: 'A small page for browsers, JSON for everything else.',
      access: EVERYBODY,
      answers: own(200, 'Where to go', {
        'text/html': TEXT,
        'application/json': object({ service: TEXT, version: TEXT, docs: TEXT, openapi: TEXT, health: TEXT }),
      }),
      handle({ app, ctx }) {
        const base = publicPath(app.config);
        ctx.vary('Accept');
        if (ctx.accepts('json', 'html') === 'html') {
          ctx.set({ 'Content-Security-Policy': POLICY, 'Cache-Control': 'no-cache' });
          ctx.type = 'html';
          ctx.body = presentPage(base, app.config.console);
        } else {
          const [docs, openapi, health] = ['docs', 'openapi.json', 'health'].map((name) => `${base}/api/${name}`);
          ctx.body = { service: 'bsvc', version: VERSION, docs, openapi, health };
        }
      },
    }),
  ],
};
