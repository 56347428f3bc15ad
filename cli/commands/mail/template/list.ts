import { listTemplates } from '../../../../src/features/mail/mail-template.js';
import { chooseProject, projectOption } from '../../../ask/choose-project.js';
import { defineCommand } from '../../../shell/command.js';

export default defineCommand({
  examples: ['bsvc mail template list --project shop'],
  parameters: { project: projectOption },
  async run(context, { project: named }) {
    const { app, project } = await chooseProject(context, named);
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
