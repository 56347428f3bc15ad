import type { Config } from '../../config.js';
import type { Clock } from '../clock.js';
import type { Database } from '../database.js';
import type { SecretBox } from '../secret-box.js';
import type { MailProvider } from './mail-provider.js';
import { openOutbox } from './outbox.js';
import { openResend } from './resend.js';
import { openSmtp } from './smtp.js';

/** The provider that the settings name, or the one whose setting is given, or the outbox. Throws when the named one lacks its setting. */
export function openMailProvider(config: Config, db: Database, clock: Clock, secrets: SecretBox): MailProvider {
  const name = config.mailProvider ?? (config.resendApiKey ? 'resend' : config.smtpUrl ? 'smtp' : 'outbox');
  if (name === 'outbox') return openOutbox(db, clock, secrets);
  if (name === 'resend') {
    if (!config.resendApiKey) throw new Error('BSVC_MAIL_PROVIDER is resend, but RESEND_API_KEY is not set');
    return openResend({ apiKey: config.resendApiKey, baseUrl: config.resendBaseUrl });
  }
  if (!config.smtpUrl) throw new Error('BSVC_MAIL_PROVIDER is smtp, but BSVC_SMTP_URL is not set');
  return openSmtp(config.smtpUrl);
}
