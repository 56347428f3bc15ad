import { invalid } from '../../errors.js';
import type { Outbound } from './outbound.js';
import { PrivateAddressError } from './public-address.js';

/**
 * 400 PRIVATE_ADDRESS for an address named by a project (`what` it is) that is not public, unless the settings allow
 * that. Every later connection is judged again.
 */
export async function requirePublicTarget(outbound: Outbound, url: URL, what: string): Promise<void> {
  try {
    await outbound.check(url);
  } catch (error) {
    if (!(error instanceof PrivateAddressError)) throw error;
    throw invalid(
      'PRIVATE_ADDRESS',
      `The ${what} leads to ${url.hostname}, which is not a public address; for development set BSVC_WEBHOOK_ALLOW_PRIVATE=true`,
    );
  }
}
