import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { agentPage } from '../../src/features/reference/machine-routes.js';
import { DIRECTORY_FOR_ALL, makeDirectory } from '../../src/platform/durable-files.js';
import { FOR_ALL, replaceFile } from '../formats/output-file.js';
import { defineCommand, option } from '../shell/command.js';

const BEGIN = '<!-- bsvc: written by "bsvc agent install" -->';
const END = '<!-- bsvc: end -->';

export default defineCommand({
  details: [
    'Writes a section into AGENTS.md and a skill (SKILL.md, LIMITS.md) that explains how to build on bsvc, step by step.',
    'A second run updates both and keeps the rest of AGENTS.md. A server serves the same files at /api/docs/agents/.',
  ].join('\n'),
  examples: ['bsvc agent install', 'bsvc agent install --skills .claude/skills'],
  parameters: {
    dir: option('--dir <folder>', 'folder of the application (default: the current one)'),
    skills: option('--skills <folder>', 'folder of skills in it (default: .agents/skills)'),
  },
  async run(context, { dir = '.', skills = '.agents/skills' }) {
    const root = resolve(context.io.cwd, dir);
    const folder = join(skills, 'bsvc');
    await makeDirectory(join(root, folder), DIRECTORY_FOR_ALL);
    for (const name of ['SKILL.md', 'LIMITS.md']) {
      await replaceFile(join(root, folder, name), agentPage(name)!, FOR_ALL);
    }
    const page = join(root, 'AGENTS.md');
    const present = await readFile(page, 'utf8').catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
      throw error;
    });
    const section = `${BEGIN}\n${agentPage('AGENTS.md')!.replaceAll('{skill}', folder)}${END}\n`;
    await replaceFile(page, withSection(present, section), FOR_ALL);
    const files = ['AGENTS.md', join(folder, 'SKILL.md'), join(folder, 'LIMITS.md')];
    return { json: { files }, quiet: files, text: () => files.map((file) => `Wrote ${file}`).join('\n') };
  },
});

/** The text with the section in its old place, or behind everything. */
function withSection(text: string, section: string): string {
  const from = text.indexOf(BEGIN);
  const to = text.indexOf(END, from);
  if (from < 0 || to < 0) return text === '' ? section : `${text.trimEnd()}\n\n${section}`;
  return text.slice(0, from) + section + text.slice(to + END.length).replace(/^\n/, '');
}
