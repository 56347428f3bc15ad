import { listMailLogs } from '../../../src/features/mail/list-mail-logs.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';

export default defineCommand({
  details: 'The latest 50, newest first.',
  examples: ['bsvc mail logs --project shop', 'bsvc mail logs --project shop --json'],
  parameters: { project: projectOption },
  async run(context, { project: named }) {
    const { app, project } = await chooseProject(context, named);
    const { items } = await listMailLogs(app, project);
    return {
      json: items,
      quiet: items.map((log) => log.id),
      text: (view) =>
        items.length === 0
          ? 'No mail yet.'
          : view.table(
              ['id', 'to', 'subject', 'status', 'at'],
              items.map((log) => [log.id, [log.to].flat().join(', '), log.subject, log.status, log.sentAt]),
            ),
    };
  },
});
