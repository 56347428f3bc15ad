import { removeTemplate } from '../../../../src/features/mail/mail-template.js';
import { defineProjectCommand } from '../../../ask/choose-project.js';
import { argument } from '../../../shell/command.js';

export default defineProjectCommand({
  details: 'A system template of the same name shows through again.',
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
