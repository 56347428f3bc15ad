import type { Config } from './config.js';

/** The path under which clients reach the service behind a proxy, without a slash at its end; empty at the root. */
export function publicPath({ publicUrl }: Pick<Config, 'publicUrl'>): string {
  return publicUrl === null ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '');
}
