import { invalid } from '../../errors.js';
import type { Outbound } from './outbound.js';
import { PrivateAddressError, ServicePortError } from './public-address.js';

/**
 * 400 PRIVATE_ADDRESS for an address named by a project (`what` it is) that is not public, PORT_NOT_ALLOWED for the
 * port of another kind of service, unless the settings allow private addresses. Every later connection is judged again.
 */
export async function requirePublicTarget(outbound: Outbound, url: URL, what: string): Promise<void> {
  try {
    await outbound.check(url);
  } catch (error) {
    if (error instanceof ServicePortError) {
      throw invalid(
        'PORT_NOT_ALLOWED',
        `The ${what} names port ${url.port}, which belongs to another kind of service: use 443, 80 or a port above 1023 that no well-known service has`,
      );
    }
    if (!(error instanceof PrivateAddressError)) throw error;
    throw invalid(
      'PRIVATE_ADDRESS',
      `The ${what} leads to ${url.hostname}, which is not a public address; for development set BSVC_WEBHOOK_ALLOW_PRIVATE=true`,
    );
  }
}
