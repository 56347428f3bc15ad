import { unavailable, AppError } from '../../src/errors.js';
import { sendTestMail } from '../../src/features/mail/sending/send-mail.js';
import { waitForMail, type MailFate } from '../../src/features/mail/sending/send-mail.js';
import { chooseProject, projectOption, defineProjectCommand } from '../ask/choose.js';
import { defineCommand, flag, option, choice, argument, optionalArgument } from '../shell/command.js';
import { listMailLogs, LOGS_PAGE, MAX_LOGS_PAGE } from '../../src/features/mail/mail-log.js';
import { MAIL_STATUSES, type MailStatus } from '../../src/features/mail/mail-log.js';
import { presentList } from '../view/present.js';
import { wholeWithin } from '../../src/config/setting-readers.js';
import { listOutbox } from '../../src/platform/mail-provider/outbox.js';
import { resolve } from 'node:path';
import { listTemplates, removeTemplate, requireTemplate, setTemplate } from '../../src/features/mail/mail-template.js';
import { readTextFile } from '../../src/text.js';
import type { Context } from '../shell/context.js';
import { UsageError } from '../view/exit.js';

const WAIT_MS = 10_000;

const test = defineCommand({
  details: `Counts towards the monthly quota. A running server or worker delivers it; the command waits up to ${WAIT_MS / 1000} seconds for the response of the mail server, and exits with 1 if it rejects the email.`,
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
    status: choice<MailStatus>('--status <status>', 'only emails with this status', MAIL_STATUSES),
    to: option('--to <address>', 'only emails to this address'),
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
  parameters: { to: option('--to <address>', 'only emails to this address') },
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

const listNames = defineProjectCommand({
  details: 'With a name, it shows the template that emails of this name use.',
  examples: ['bsvc mail template list --project shop', 'bsvc mail template list welcome --project shop'],
  parameters: { name: optionalArgument('name', 'name of the template') },
  async run(context, { app, project, name }) {
    if (name !== undefined) {
      const { text, used } = await requireTemplate(app, project, { name });
      return {
        json: { ...used, ...text },
        quiet: used.id ?? used.name,
        text: () =>
          [`${used.name} (${used.scope})`, `Subject: ${text.subject}`, '', text.text ?? text.html ?? '']
            .join('\n')
            .trimEnd(),
      };
    }
    const templates = await listTemplates(app, project);
    return {
      json: templates,
      quiet: templates.map((template) => template.name),
      text: (view) =>
        view.table(
          ['name', 'scope', 'subject'],
          templates.map(({ name, scope, subject }) => [name, scope, subject]),
        ),
    };
  },
});

const setText = defineCommand({
  details:
    'Placeholders: {{name}} escaped, {{{name}}} raw, {{a.b}} nested. A template with the name of a system template replaces it.',
  examples: [
    'bsvc mail template set welcome --project shop --subject "Hello {{name}}" --html welcome.html --text welcome.txt',
  ],
  audited: true,
  parameters: {
    name: argument('name', 'name of the template'),
    project: projectOption,
    subject: option('--subject <text>', 'subject'),
    html: option('--html <file>', 'file with the HTML'),
    text: option('--text <file>', 'file with the plain text'),
  },
  async run(context, { name, project: named, subject: given, html, text }) {
    if (html === undefined && text === undefined) {
      throw new UsageError('No text given: add --html <file>, --text <file> or both.');
    }
    const subject = given ?? (await context.ask.text('Subject:', 'The option --subject <text> is missing'));
    const { app, project } = await chooseProject(context, named);
    const saved = await setTemplate(app, project, name, {
      subject,
      ...(html !== undefined && { html: await readText(context, '--html', html) }),
      ...(text !== undefined && { text: await readText(context, '--text', text) }),
    });
    const id = saved._id.toHexString();
    return { json: { id, name, scope: saved.scope, subject }, quiet: id, text: () => `Template ${name} is set.` };
  },
});

async function readText(context: Context, option: string, file: string): Promise<string> {
  try {
    return await readTextFile(resolve(context.io.cwd, file), file);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new UsageError(`${option} names ${file}, which cannot be read.`);
  }
}

const removeText = defineProjectCommand({
  details: 'A system template of the same name is used again.',
  examples: [
    'bsvc mail template remove welcome --project shop',
    'bsvc mail template remove welcome --project shop --yes',
  ],
  audited: true,
  destroys: ({ name }) => ({ what: `Removes the template ${name} with its text.`, name }),
  parameters: { name: argument('name', 'name of the template') },
  async run(context, { app, project, name }) {
    await removeTemplate(app, project, name);
    return { json: { name, removed: true }, quiet: name, text: () => `Template ${name} is removed.` };
  },
});

export default { test, logs, outbox };
export const templateCommands = { list: listNames, set: setText, remove: removeText };
