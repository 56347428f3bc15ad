import { listTemplates, requireTemplate } from '../../../../src/features/mail/mail-template.js';
import { defineProjectCommand } from '../../../ask/choose-project.js';
import { optionalArgument } from '../../../shell/command.js';

export default defineProjectCommand({
  details: 'With a name it shows the template that mails of this name use.',
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
