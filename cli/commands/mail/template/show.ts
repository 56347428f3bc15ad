import { requireTemplate } from '../../../../src/features/mail/mail-template.js';
import { chooseProject, projectOption } from '../../../ask/choose-project.js';
import { argument, defineCommand } from '../../../shell/command.js';

export default defineCommand({
  examples: ['bsvc mail template show welcome --project shop'],
  parameters: { name: argument('name', 'name of the template'), project: projectOption },
  async run(context, { name, project: named }) {
    const { app, project } = await chooseProject(context, named);
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
