import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS } from '../../cli/commands/index.js';
import type { CommandNode } from '../../cli/shell/command.js';
import { SETTINGS } from '../../src/config/settings.js';

const ROOT = join(import.meta.dirname, '..', '..');

/** What somebody has to know who uses or changes it, as numbers. */
export function countSurface(): [what: string, count: number][] {
  const guides = join(ROOT, 'templates', 'docs');
  const decisions = join(ROOT, 'src', 'decisions');
  const pages = pagesOf(guides);
  const written = pages.filter((text) => !text.includes('<!-- made by npm run docs -->'));
  return [
    ['commands', COMMANDS.reduce((sum, node) => sum + countCommands(node), 0)],
    ['settings', Object.keys(SETTINGS).length],
    ['decisions', pagesOf(decisions).reduce((sum, text) => sum + (text.match(/^## \d+/gm)?.length ?? 0), 0)],
    ['guides', pages.length],
    ['words of guides', countWords(pages)],
    ['words of guides by hand', countWords(written)],
  ];
}

function countWords(texts: readonly string[]): number {
  return texts.join('\n').split(/\s+/).filter(Boolean).length;
}

function countCommands(node: CommandNode): number {
  return node.commands?.reduce((sum, inner) => sum + countCommands(inner), 0) ?? 1;
}

function pagesOf(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => readFileSync(join(folder, name), 'utf8'));
}
