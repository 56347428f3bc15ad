import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { prepareFile, servePreparedFile, type PreparedFile } from '../../http/routes/prepared-file.js';
import { own, PUBLIC, route, type RouteContext, type RouteList } from '../../http/routes/route.js';
import { PACKAGE_ROOT } from '../../package.js';
import { TEXT } from '../../platform/schema/schema.js';

/** Nothing inline, nothing from elsewhere, in no frame; a script that would write HTML throws. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};
const PAGE = 'index.html';
/** Names as the build gives them: the content's hash is in each but the page's. */
const NAME = /^[A-Za-z0-9-]+\.(js|css|svg)$/;

const files = new Map<string, Promise<PreparedFile | null>>();

/** A built file of the console, kept in memory; null when there is none. */
function loadFile(name: string): Promise<PreparedFile | null> {
  let file = files.get(name);
  if (!file) {
    file = readFile(join(PACKAGE_ROOT, 'dist', 'console', name)).then(
      (bytes) => prepareFile(TYPES[name.split('.').at(-1)!]!, bytes),
      () => null,
    );
    // What is not there may be asked for under any name.
    void file.then((found) => {
      if (!found) files.delete(name);
    });
    files.set(name, file);
  }
  return file;
}

async function serve(app: App, ctx: RouteContext, name: string): Promise<void> {
  const file = app.config.console && (name === PAGE || NAME.test(name)) ? await loadFile(name) : null;
  if (!file) throw missing('NOT_FOUND', `No such endpoint: ${ctx.method} ${ctx.path}`);
  servePreparedFile(ctx, file);
  ctx.set({
    'Content-Security-Policy': POLICY,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': name === PAGE ? 'no-cache' : 'public, max-age=31536000, immutable',
  });
}

/** The operators' console (BSVC_CONSOLE): static files, without data before sign-in. */
export const CONSOLE_ROUTES: RouteList = {
  prefix: '/console',
  tag: 'Service',
  rate: 'page',
  routes: [
    route('GET /console', {
      id: 'getConsole',
      summary: 'The operators’ console for browsers',
      access: PUBLIC,
      answers: [
        own(200, 'The page', { 'text/html': TEXT }),
        own(304, 'The copy is good'),
        own(308, 'With a slash at the end: what the page needs is beside it'),
      ],
      errors: { 404: ['NOT_FOUND'] },
      async handle({ app, ctx }) {
        if (ctx.path.endsWith('/')) return serve(app, ctx, PAGE);
        if (!app.config.console) throw missing('NOT_FOUND', `No such endpoint: ${ctx.method} ${ctx.path}`);
        ctx.body = null;
        ctx.status = 308;
        // Relative, so that it holds behind a proxy that takes a prefix away.
        ctx.set('Location', 'console/');
      },
    }),
    route('GET /console/:file', {
      id: 'getConsoleFile',
      summary: 'Files of the console',
      access: PUBLIC,
      answers: [
        own(200, 'A script or a style sheet', { 'text/javascript': TEXT, 'text/css': TEXT, 'image/svg+xml': TEXT }),
        own(304, 'The copy is good'),
      ],
      errors: { 404: ['NOT_FOUND'] },
      handle: ({ app, ctx, params }) => serve(app, ctx, params.file),
    }),
  ],
};
