import { sendTestMail } from '../../../src/features/mail/sending/send-test-mail.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand, option } from '../../shell/command.js';

export default defineCommand({
  details: 'It takes a slot of the monthly quota like any other mail; a running server or worker delivers it.',
  examples: ['bsvc mail test --project shop --to me@example.com'],
  audited: true,
  parameters: { project: projectOption, to: option('--to <address>', 'who gets it') },
  async run(context, { project: named, to: given }) {
    const to = given ?? (await context.ask.text('Who gets it:', 'The option --to <address> is missing'));
    const { app, project } = await chooseProject(context, named);
    const queued = await sendTestMail(app, project, to);
    return {
      json: queued,
      quiet: queued.id,
      text: () =>
        `Queued for ${to} (${app.mail.name === 'outbox' && queued.provider === 'default' ? 'see it with "bsvc mail outbox"' : 'see "bsvc mail logs"'}).`,
    };
  },
});
