import { removeTemplate } from '../../../../src/features/mail/mail-template.js';
import { chooseProject, projectOption } from '../../../ask/choose-project.js';
import { argument, defineCommand } from '../../../shell/command.js';

export default defineCommand({
  details: 'A system template of the same name shows through again.',
  examples: ['bsvc mail template remove welcome --project shop'],
  audited: true,
  parameters: { name: argument('name', 'name of the template'), project: projectOption },
  async run(context, { name, project: named }) {
    const { app, project } = await chooseProject(context, named);
    await removeTemplate(app, project, name);
    return { json: { name, removed: true }, quiet: name, text: () => `Template ${name} is removed.` };
  },
});
