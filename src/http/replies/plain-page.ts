import type { Context } from 'koa';
import { prefersHtml } from './negotiate.js';

/** The page may load the style of the docs and nothing else. */
const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Whether a person's browser opens the address, rather than a program that reads JSON. */
export function isOpenedByBrowser(ctx: Context): boolean {
  ctx.vary('Accept');
  return (ctx.method === 'GET' || ctx.method === 'HEAD') && prefersHtml(ctx);
}

/** Answers with a page without navigation or script. `content` is HTML, `base` the path before /api. */
export function replyPage(ctx: Context, base: string, { title, content }: { title: string; content: string }): void {
  ctx.set({ 'Content-Security-Policy': POLICY, 'Cache-Control': 'no-cache' });
  ctx.type = 'html';
  ctx.body = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title} · bsvc</title>
    <link rel="stylesheet" href="${base}/api/docs/page.css">
  </head>
  <body class="alone">
    <main>
      <h1>${title}</h1>
${content}
    </main>
  </body>
</html>
`;
}
