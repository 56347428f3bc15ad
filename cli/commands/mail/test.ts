import { unavailable } from '../../../src/errors.js';
import { sendTestMail } from '../../../src/features/mail/sending/send-mail.js';
import { waitForMail, type MailFate } from '../../../src/features/mail/sending/wait-for-mail.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand, flag, option } from '../../shell/command.js';

const WAIT_MS = 10_000;

export default defineCommand({
  details: `Counts towards the monthly quota. A running server or worker delivers it; the command waits ${WAIT_MS / 1000} seconds for what the mail server says, and exits with 1 when that refuses.`,
  examples: ['bsvc mail test --project shop --to me@example.com'],
  audited: true,
  parameters: {
    project: projectOption,
    to: option('--to <address>', 'recipient'),
    noWait: flag('--no-wait', 'only queue it'),
  },
  async run(context, { project: named, to: given, noWait }) {
    const to = given ?? (await context.ask.text('Who gets it:', 'The option --to <address> is missing'));
    const { app, project } = await chooseProject(context, named);
    const queued = await sendTestMail(app, project, to);
    const isKept = app.mail.name === 'outbox' && queued.provider === 'default';
    if (!noWait && !isKept) context.out.note(`Waiting for what the mail server says of ${to} …`);
    const fate: MailFate =
      noWait || isKept ? { status: 'queued', reason: null } : await waitForMail(app, queued.id, WAIT_MS, context.stop);
    if (fate.reason !== null && fate.status !== 'sent') {
      const again = fate.status === 'queued' ? '; it is tried again' : '';
      throw unavailable('MAIL_NOT_SENT', `The mail to ${to} was not sent: ${fate.reason}${again}`);
    }
    return { json: { ...queued, ...fate }, quiet: queued.id, text: () => describe(to, fate, isKept) };
  },
});

function describe(to: string, { status, reason }: MailFate, isKept: boolean): string {
  if (isKept) return `Queued for ${to} (see it with "bsvc mail outbox").`;
  if (status === 'queued') return `Queued for ${to}: no server or worker has taken it yet (see "bsvc mail logs").`;
  return reason === null ? `Sent: the mail server took it for ${to} (see "bsvc mail logs").` : `Sent, but ${reason}.`;
}
