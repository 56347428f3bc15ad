import { defaulted, optional } from './setting.js';
import { address, among, asIs, httpUrl, parseRate } from './setting-readers.js';

/** Mail and its provider. */
export const MAIL_SETTINGS = {
  mailProvider: optional(
    'BSVC_MAIL_PROVIDER',
    among('outbox', 'resend', 'smtp'),
    'email provider; `outbox` stores emails instead of sending them',
    {
      defaultText: '`resend` or `smtp` when their setting is given, else `outbox`',
    },
  ),
  resendApiKey: optional('RESEND_API_KEY', asIs, 'API key of Resend', { secret: true }),
  resendBaseUrl: optional('RESEND_BASE_URL', httpUrl, 'URL of the Resend API', { defaultText: 'that of Resend' }),
  smtpUrl: optional('BSVC_SMTP_URL', address('smtp', 'smtps'), 'mail server: `smtps://user:password@host:465`', {
    secret: true,
  }),
  mailFrom: optional('BSVC_MAIL_FROM', asIs, 'default sender: an address, or `Name <address>`'),
  mailRate: defaulted(
    'BSVC_MAIL_RATE',
    parseRate,
    { count: 2, windowMs: 1000 },
    'rate of calls to the email provider per key',
    {
      defaultText: '2/1s',
    },
  ),
  providerWebhookSecret: optional('PROVIDER_WEBHOOK_SECRET', asIs, 'verifies webhooks of the email provider', {
    secret: true,
  }),
};
