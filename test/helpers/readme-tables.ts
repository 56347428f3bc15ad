import { format, resolveConfig } from 'prettier';
import { COMMANDS } from '../../cli/commands/index.js';
import type { CommandNode } from '../../cli/shell/command.js';
import { buildProgram } from '../../cli/run.js';
import { SETTINGS } from '../../src/config.js';

/** The README with its marked tables made anew from the code, formatted as the repository is. */
export async function renewReadme(text: string, path: string): Promise<string> {
  const withCommands = replaceBlock(text, 'commands', await renderCommands());
  const renewed = replaceBlock(withCommands, 'settings', renderSettings());
  return format(renewed, { ...(await resolveConfig(path)), parser: 'markdown' });
}

function replaceBlock(text: string, name: string, content: string): string {
  const block = new RegExp(`<!-- ${name} -->[\\s\\S]*?<!-- /${name} -->`);
  if (!block.test(text)) throw new Error(`the README has no block <!-- ${name} -->`);
  return text.replace(block, () => `<!-- ${name} -->\n\n${content}\n\n<!-- /${name} -->`);
}

async function renderCommands(): Promise<string> {
  const rows = await listCommands(COMMANDS, []);
  return ['| command | does |', '|---|---|', ...rows].join('\n');
}

async function listCommands(nodes: readonly CommandNode[], path: readonly CommandNode[]): Promise<string[]> {
  const rows: string[] = [];
  for (const node of nodes) {
    const here = [...path, node];
    if (node.commands) rows.push(...(await listCommands(node.commands, here)));
    else rows.push(`| \`${await renderUsage(here)}\` | ${escapeCell(node.summary)} |`);
  }
  return rows;
}

async function renderUsage(path: readonly CommandNode[]): Promise<string> {
  const leaf = path.at(-1)!;
  const { program } = buildProgram(path, leaf.load ? (await leaf.load()).default : null);
  let command = program;
  for (const { name } of path) command = command.commands.find((each) => each.name() === name)!;
  // What many commands share is said once above the table.
  const own = command.options.filter(({ long }) => long !== '--project');
  const options = own.map((option) => `[${option.flags.split(', ').at(-1)}]`);
  const words = command.usage().replace(' [options]', '').replace('[options]', '');
  return escapeCell([...path.map(({ name }) => name), words, ...options].filter((part) => part !== '').join(' '));
}

function renderSettings(): string {
  const rows = Object.values(SETTINGS).map((setting) => {
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
    return `| \`${env}\` | ${escapeCell(shown)} | ${escapeCell(text)} |`;
  });
  return ['| name | default | |', '|---|---|---|', ...rows].join('\n');
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|');
}
