import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import { serveReferenceFile } from './reference-file.js';
import type { ReferenceFiles } from './reference-files.js';

const DOCUMENT_PREFIX = '/api/openapi.json';
const PAGE_PREFIX = '/api/docs';

/**
 * The description of the whole API for programs. Open to everybody: it says nothing that is not the same in every
 * installation.
 */
export function apiDocumentRoutes(): RouteGroup {
  const router = createRouter(DOCUMENT_PREFIX);
  router.get('/', async (ctx) => serveReferenceFile(ctx, (await loadFiles()).document));
  return { prefix: DOCUMENT_PREFIX, router };
}

/** The same as a page to read, with what it needs. */
export function docsPageRoutes(): RouteGroup {
  const router = createRouter(PAGE_PREFIX);
  router.get('/', async (ctx) => serveReferenceFile(ctx, (await loadFiles()).page));
  router.get('/page.css', async (ctx) => serveReferenceFile(ctx, (await loadFiles()).style));
  router.get('/page.js', async (ctx) => serveReferenceFile(ctx, (await loadFiles()).script));
  return { prefix: PAGE_PREFIX, router };
}

let files: Promise<ReferenceFiles> | undefined;

/** Made when they are first asked for, once per process: starting the service does not wait for them. */
function loadFiles(): Promise<ReferenceFiles> {
  return (files ??= import('./reference-files.js').then(({ makeReferenceFiles }) => makeReferenceFiles()));
}
