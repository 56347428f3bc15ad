import { resolve } from 'node:path';
import { AppError } from '../../src/errors.js';
import { listTemplates, removeTemplate, requireTemplate, setTemplate } from '../../src/features/mail/mail-template.js';
import { readTextFile } from '../../src/text.js';
import { chooseProject, defineProjectCommand, projectOption } from '../ask/choose-project.js';
import { argument, defineCommand, option, optionalArgument } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { UsageError } from '../view/exit.js';

const list = defineProjectCommand({
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

const set = defineCommand({
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

const remove = defineProjectCommand({
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

export default { list, set, remove };
