import type { Config } from '../../config/config.js';
import type { Clock } from '../time/clock.js';
import type { Database } from '../database/database.js';
import type { SecretBox } from '../secrets/secret-box.js';
import type { MailProvider } from './mail-provider.js';
import { openOutbox } from './outbox.js';
import { openResend } from './resend.js';
import { openSmtp } from './smtp.js';

/** The provider that the settings name, or the one whose setting is given, or the outbox. */
export function openMailProvider(config: Config, db: Database, clock: Clock, secrets: SecretBox): MailProvider {
  const { mailProvider, resendApiKey, resendBaseUrl, smtpUrl } = config;
  if (resendApiKey && (mailProvider ?? 'resend') === 'resend') {
    return openResend({ apiKey: resendApiKey, baseUrl: resendBaseUrl });
  }
  if (smtpUrl && (mailProvider ?? 'smtp') === 'smtp') return openSmtp(smtpUrl);
  return openOutbox(db, clock, secrets);
}
