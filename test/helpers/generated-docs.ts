import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { GROUPS } from '../../cli/commands/index.js';
import type { CommandNode } from '../../cli/shell/command.js';
import { buildProgram } from '../../cli/run.js';
import { SETTINGS } from '../../src/config/settings.js';
import { RETAINED_DATA } from '../../cli/doctor/retained-data.js';

const MADE = '<!-- made by npm run docs -->';

/** The guide of all commands, made from the code and formatted as the repository is. */
export async function renderCommandsPage(): Promise<string> {
  const chapters: string[] = [];
  for (const [group, nodes] of Object.entries(GROUPS)) {
    chapters.push(`## ${group}\n\n${(await listCommands(nodes, [])).join('\n')}`);
  }
  return formatPage(`# Command line

${MADE}

\`bsvc <command> --help\` explains each command with examples.

- Every command takes \`--json\` (exactly one JSON value on standard output; of a failure it is the last line on standard error), \`--quiet\` (only the essential value), \`--no-input\` (never ask), \`--no-color\`, \`--data-dir\` and \`--env-file\`.
- Commands inside a project take \`--project\`, or \`BSVC_PROJECT\`.
- Missing values are asked for at a terminal; elsewhere they are an error.
- Every command works while the server runs.
- Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 a dependency cannot be reached, 130 interrupted.

${chapters.join('\n\n')}
`);
}

/** The guide of all settings, made from the code and formatted as the repository is. */
export async function renderSettingsPage(): Promise<string> {
  const items = Object.values(SETTINGS).map((setting) => {
    const {
      env,
      text,
      default: fallback,
      defaultText,
    } = setting as {
      env: string;
      text: string;
      default: unknown;
      defaultText?: string;
    };
    const shown = defaultText ?? (fallback === null ? 'none' : `\`${String(fallback)}\``);
    return `- **\`${env}\`**: ${text}. Default: ${shown}.`;
  });
  return formatPage(`# Settings

${MADE}

A flag wins over the environment, the environment over the env file (\`./.env\`, or \`--env-file\`), the env file over the default. \`bsvc settings\` shows every value and where it came from.

A secret can also come from the file that \`<NAME>_FILE\` names. Durations read like \`15m\` or \`7d\`, sizes like \`10mb\`, rates like \`100/15m\`.

${items.join('\n')}

## What is kept, how long, how much

What the service keeps of its own accord, beside documents, files and accounts. \`bsvc doctor\` shows how much it is just now.

| what | how long | how much at most |
| --- | --- | --- |
${RETAINED_DATA.map(({ what, time, size }) => `| ${what} | ${time} | ${size} |`).join('\n')}
`);
}

/** Formats the text of a guide as the guides are. */
async function formatPage(text: string): Promise<string> {
  const guide = fileURLToPath(new URL('../../templates/docs/commands.md', import.meta.url));
  return format(text, { ...(await resolveConfig(guide)), parser: 'markdown' });
}

async function listCommands(nodes: readonly CommandNode[], path: readonly CommandNode[]): Promise<string[]> {
  const items: string[] = [];
  for (const node of nodes) {
    const here = [...path, node];
    if (node.commands) items.push(...(await listCommands(node.commands, here)));
    else items.push(`- \`${await renderUsage(here)}\`: ${node.summary}.`);
  }
  return items;
}

async function renderUsage(path: readonly CommandNode[]): Promise<string> {
  const leaf = path.at(-1)!;
  const { program } = buildProgram(path, leaf.load ? (await leaf.load()).default : { examples: [] });
  let command = program;
  for (const { name } of path) command = command.commands.find((each) => each.name() === name)!;
  // That which commands inside a project share is said once at the top of the page.
  const own = command.options.filter(({ description }) => !description.endsWith('(BSVC_PROJECT)'));
  const options = own.map((option) => `[${option.flags.split(', ').at(-1)}]`);
  const words = command.usage().replace(' [options]', '').replace('[options]', '');
  return [...path.map(({ name }) => name), words, ...options].filter((part) => part !== '').join(' ');
}
