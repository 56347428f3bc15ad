import type { Context } from 'koa';

/**
 * Longest `Accept` or `Accept-Encoding` that is read. Browsers send 200 characters; 16 kB of entries take milliseconds
 * to sort.
 */
const MAX_NEGOTIATED = 1_000;

/** Whether the client prefers HTML to JSON. A header that is absent or too long prefers nothing. */
export function prefersHtml(ctx: Context): boolean {
  return isRead(ctx, 'accept') && ctx.accepts('json', 'html') === 'html';
}

/** Whether the client reads gzip; not where it does not say so, or says it at too great a length. */
export function readsGzip(ctx: Context): boolean {
  return isRead(ctx, 'accept-encoding') && ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
}

/** Which of the encodings that are `there` the client reads, the first that it likes best; null for none. */
export function chooseEncoding<T extends 'br' | 'gzip'>(ctx: Context, there: readonly T[]): T | null {
  if (there.length === 0 || !isRead(ctx, 'accept-encoding')) return null;
  const chosen = ctx.acceptsEncodings(...there, 'identity');
  return there.find((encoding) => encoding === chosen) ?? null;
}

function isRead({ req }: Context, name: 'accept' | 'accept-encoding'): boolean {
  const length = req.headers[name]?.length ?? 0;
  return length > 0 && length <= MAX_NEGOTIATED;
}
