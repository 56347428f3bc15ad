import { resolve } from 'node:path';
import { AppError } from '../../../../src/errors.js';
import { setTemplate } from '../../../../src/features/mail/mail-template.js';
import { readTextFile } from '../../../../src/text.js';
import { chooseProject, projectOption } from '../../../ask/choose-project.js';
import { argument, defineCommand, option } from '../../../shell/command.js';
import type { Context } from '../../../shell/context.js';
import { UsageError } from '../../../view/exit.js';

export default defineCommand({
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
