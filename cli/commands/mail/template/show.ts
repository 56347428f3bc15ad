import { requireTemplate } from '../../../../src/features/mail/mail-template.js';
import { defineProjectCommand } from '../../../ask/choose-project.js';
import { argument } from '../../../shell/command.js';

export default defineProjectCommand({
  examples: ['bsvc mail template show welcome --project shop'],
  parameters: { name: argument('name', 'name of the template') },
  async run(context, { app, project, name }) {
    const { text, used } = await requireTemplate(app, project, { name });
    return {
      json: { ...used, ...text },
      quiet: used.id ?? used.name,
      text: () =>
        [`${used.name} (${used.scope})`, `Subject: ${text.subject}`, '', text.text ?? text.html ?? '']
          .join('\n')
          .trimEnd(),
    };
  },
});
