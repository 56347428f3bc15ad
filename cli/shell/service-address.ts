import type { App } from '../../src/app.js';
import type { Config } from '../../src/config/config.js';
import { unixSocketOf } from '../../src/http/unix-socket.js';
import { findServedAddress } from '../../src/platform/database/serving-mark.js';

const OWN_MACHINE: ReadonlySet<string> = new Set(['127.0.0.1', '::1', '0.0.0.0', '::']);

/** The public address of the service: as the running process has published it, otherwise from the settings. */
export async function findServiceAddress({ config, db }: App): Promise<string> {
  const served = config.publicUrl === null ? await findServedAddress(db, config.dataDir) : null;
  return served ?? serviceAddress(config);
}

/**
 * Where people reach a service of these settings, without a slash at the end. On this machine by the name that pages of
 * development servers have too: browsers keep cookies from pages of another site, which 127.0.0.1 is. Of a socket only
 * `publicUrl` could say it.
 */
export function serviceAddress({ publicUrl, host, port }: Pick<Config, 'publicUrl' | 'host' | 'port'>): string {
  if (publicUrl !== null) return publicUrl.replace(/\/$/, '');
  if (unixSocketOf(host) !== null) return 'http://localhost';
  const name = OWN_MACHINE.has(host) ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}
