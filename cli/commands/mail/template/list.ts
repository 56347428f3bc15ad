import { listTemplates } from '../../../../src/features/mail/mail-template.js';
import { defineProjectCommand } from '../../../ask/choose-project.js';

export default defineProjectCommand({
  examples: ['bsvc mail template list --project shop'],
  async run(context, { app, project }) {
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
