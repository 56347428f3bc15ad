import { unavailable } from '../../src/errors.js';
import { sendTestMail, waitForMail, type MailFate } from '../../src/features/mail/sending/send-mail.js';
import { chooseProject, projectOption, defineProjectCommand } from '../ask/choose-project.js';
import { defineCommand, flag, option, choice } from '../shell/command.js';
import {
  listMailLogs,
  LOGS_PAGE,
  MAX_LOGS_PAGE,
  MAIL_STATUSES,
  type MailStatus,
} from '../../src/features/mail/mail-log.js';
import { presentList } from '../view/present-list.js';
import { wholeWithin } from '../../src/config/setting-readers.js';
import { listOutbox } from '../../src/platform/mail-provider/outbox.js';

const WAIT_MS = 10_000;

const test = defineCommand({
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

const logs = defineProjectCommand({
  details: 'The latest, newest first.',
  examples: ['bsvc mail logs --project shop', 'bsvc mail logs --project shop --status bounced --json'],
  parameters: {
    status: choice<MailStatus>('--status <status>', 'only these', MAIL_STATUSES),
    to: option('--to <address>', 'only mails to this address'),
    limit: option('--limit <n>', `how many (default: ${LOGS_PAGE})`, wholeWithin(1, MAX_LOGS_PAGE)),
  },
  async run(context, { app, project, ...query }) {
    const { items } = await listMailLogs(app, project, query);
    return presentList(items, {
      name: (log) => log.id,
      empty: 'No mail yet.',
      head: ['id', 'to', 'subject', 'status', 'reason', 'at'],
      row: (log) => [log.id, [log.to].flat().join(', '), log.subject, log.status, log.reason, log.sentAt],
    });
  },
});

const outbox = defineCommand({
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

export default { test, logs, outbox };
