import { defaulted, optional } from './setting.js';
import { address, among, asIs, httpUrl, parseRate } from './setting-readers.js';

/** Mail and its provider. */
export const MAIL_SETTINGS = {
  mailProvider: optional('BSVC_MAIL_PROVIDER', among('outbox', 'resend', 'smtp'), 'who sends mail; `outbox` keeps it', {
    defaultText: '`resend` or `smtp` when their setting is given, else `outbox`',
  }),
  resendApiKey: optional('RESEND_API_KEY', asIs, 'key of the mail provider', { secret: true }),
  resendBaseUrl: optional('RESEND_BASE_URL', httpUrl, 'address of the mail provider', { defaultText: 'its own' }),
  smtpUrl: optional('BSVC_SMTP_URL', address('smtp', 'smtps'), 'mail server: `smtps://user:password@host:465`', {
    secret: true,
  }),
  mailFrom: optional('BSVC_MAIL_FROM', asIs, 'default sender: an address, or `Name <address>`'),
  mailRate: defaulted(
    'BSVC_MAIL_RATE',
    parseRate,
    { count: 2, windowMs: 1000 },
    'calls to the mail provider for each key',
    {
      defaultText: '2/1s',
    },
  ),
  providerWebhookSecret: optional('PROVIDER_WEBHOOK_SECRET', asIs, 'checks the mail provider’s events', {
    secret: true,
  }),
};
