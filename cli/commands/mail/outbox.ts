import { listOutbox } from '../../../src/platform/mail-provider/outbox.js';
import { defineCommand, option } from '../../shell/command.js';

export default defineCommand({
  details: 'Emails that were stored instead of sent, the default without a provider.',
  examples: ['bsvc mail outbox', 'bsvc mail outbox --to ann@example.com --json'],
  parameters: { to: option('--to <address>', 'only mails to this address') },
  async run(context, { to }) {
    const app = await context.app();
    const mails = await listOutbox(app, to === undefined ? {} : { to });
    return {
      json: mails,
      untrusted: true,
      quiet: mails.map((mail) => mail.id),
      text: () =>
        mails.length === 0
          ? 'The outbox is empty.'
          : mails
              .map(
                (mail) =>
                  `${mail.createdAt.toISOString()}  ${mail.to.join(', ')}\n${mail.subject}\n\n${(mail.text ?? mail.html ?? '').trimEnd()}\n`,
              )
              .join(`${'-'.repeat(72)}\n`),
    };
  },
});
