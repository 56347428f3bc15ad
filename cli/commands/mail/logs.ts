import { listMailLogs, LOGS_PAGE, MAX_LOGS_PAGE } from '../../../src/features/mail/list-mail-logs.js';
import { MAIL_STATUSES, type MailStatus } from '../../../src/features/mail/mail-log.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { choice, option } from '../../shell/command.js';
import { presentList } from '../../view/present-list.js';
import { wholeWithin } from '../../../src/config/setting-readers.js';

export default defineProjectCommand({
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
