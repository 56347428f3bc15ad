import type { App } from '../../app.js';
import { invalid, unavailable } from '../../errors.js';
import { callResend, openResendClient } from '../../platform/mail-provider/resend.js';

/**
 * Asks the mail provider whether it knows the key: 400 when it does not, 503 when it does not answer. A key that may
 * only send is a good one.
 */
export async function verifyMailKey(app: Pick<App, 'config'>, apiKey: string): Promise<void> {
  const client = await openResendClient(apiKey, app.config.resendBaseUrl);
  const reply = await callResend<unknown>((signal) => client.segments.list(undefined, { signal }));
  if (reply.data !== null || reply.error?.name === 'restricted_api_key') return;
  const status = reply.error?.statusCode ?? null;
  if (status === 401 || status === 403 || status === 400) {
    throw invalid('MAIL_KEY_REFUSED', 'The mail provider does not accept this key');
  }
  throw unavailable(
    'MAIL_PROVIDER_UNAVAILABLE',
    'The mail provider cannot be reached to check the key: try again, or store it without the check',
  );
}
