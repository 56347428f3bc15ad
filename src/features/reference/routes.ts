import type { Context } from 'koa';
import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import type { ReferenceFile, ReferenceFiles } from './reference-files.js';

const DOCUMENT_PREFIX = '/api/openapi.json';
const PAGE_PREFIX = '/api/docs';

/** The page may load what is beside it and nothing else. */
const PAGE_POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * The description of the whole API for programs. Open to everybody: it says nothing that is not the same in every
 * installation.
 */
export function apiDocumentRoutes(): RouteGroup {
  const router = createRouter(DOCUMENT_PREFIX);
  router.get('/', async (ctx) => serve(ctx, (await loadFiles()).document));
  return { prefix: DOCUMENT_PREFIX, router };
}

/** The same as a page to read, with what it needs. */
export function docsPageRoutes(): RouteGroup {
  const router = createRouter(PAGE_PREFIX);
  router.get('/', async (ctx) => {
    ctx.set('Content-Security-Policy', PAGE_POLICY);
    serve(ctx, (await loadFiles()).page);
  });
  router.get('/page.css', async (ctx) => serve(ctx, (await loadFiles()).style));
  router.get('/page.js', async (ctx) => serve(ctx, (await loadFiles()).script));
  return { prefix: PAGE_PREFIX, router };
}

let files: Promise<ReferenceFiles> | undefined;

/** Made when they are first asked for, once per process: starting the service does not wait for them. */
function loadFiles(): Promise<ReferenceFiles> {
  return (files ??= import('./reference-files.js').then(({ makeReferenceFiles }) => makeReferenceFiles()));
}

function serve(ctx: Context, file: ReferenceFile): void {
  ctx.set({ ETag: file.etag, 'Cache-Control': 'public, max-age=300', Vary: 'Accept-Encoding' });
  ctx.type = file.type;
  ctx.status = 200;
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  if (ctx.acceptsEncodings('gzip', 'identity') === 'gzip') {
    ctx.set('Content-Encoding', 'gzip');
    ctx.body = file.gzipped;
  } else ctx.body = file.bytes;
}
