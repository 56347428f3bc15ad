import { mkdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { agentPage } from '../../src/features/reference/machine-pages.js';
import { replaceFile } from './replace-file.js';
import type { Context } from '../shell/context.js';
import type { Result } from '../view/output.js';

const BEGIN = '<!-- bsvc: written by "bsvc generate agents" -->';
const END = '<!-- bsvc: end -->';
/** The system's default for files without secrets. */
const FOR_ALL = 0o666;

/**
 * Writes a section into AGENTS.md of an application and a skill that explains how to build on bsvc; a second time it
 * renews both and keeps the rest of AGENTS.md.
 */
export async function writeAgentFiles(
  { io }: Context,
  { out = '.', skills = '.agents/skills' }: { out: string | undefined; skills: string | undefined },
): Promise<Result> {
  const root = resolve(io.cwd, out);
  const folder = join(skills, 'bsvc');
  await mkdir(join(root, folder), { recursive: true });
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
}

/** The text with the section in its old place, or behind everything. */
function withSection(text: string, section: string): string {
  const from = text.indexOf(BEGIN);
  const to = text.indexOf(END, from);
  if (from < 0 || to < 0) return text === '' ? section : `${text.trimEnd()}\n\n${section}`;
  return text.slice(0, from) + section + text.slice(to + END.length).replace(/^\n/, '');
}
