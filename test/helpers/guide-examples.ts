import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const GUIDES_FOLDER = join(import.meta.dirname, '..', '..', 'templates', 'docs');

/** A fenced block of a guide. */
export interface Example {
  /** The word behind the fence. */
  language: string;
  text: string;
  /** Name under which the reader saves it: a comment in its first line. */
  file: string | null;
  /** The `text` block right behind it: what running it prints, with `…` for what differs each time. */
  shown: string | null;
}

/** The guides by file name. */
export function readGuides(): Map<string, string> {
  const names = readdirSync(GUIDES_FOLDER).filter((name) => name.endsWith('.md'));
  return new Map(names.map((name) => [name, readFileSync(join(GUIDES_FOLDER, name), 'utf8')]));
}

/** The fenced blocks of a text of Markdown, those of outputs with the example before them. */
export function readExamples(markdown: string): Example[] {
  const examples: Example[] = [];
  let end = 0;
  for (const { 0: all, 1: language, 2: text, index } of markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
    const before = examples.at(-1);
    const isNext = before?.shown === null && markdown.slice(end, index).trim() === '';
    if (language === 'text' && isNext) before.shown = text!;
    else examples.push({ language: language!, text: text!, file: fileOf(text!), shown: null });
    end = index + all.length;
  }
  return examples;
}

const fileOf = (text: string): string | null =>
  /^(?:\/\/|#|<!--) ([\w.-]+\.\w+)(?: -->)?$/.exec(text.split('\n', 1)[0]!)?.[1] ?? null;

/** Lines of `shown` that `output` does not have, in their order; `…` stands for any text of a line. */
export function missingLines(shown: string, output: string): string[] {
  let rest = output;
  const missing: string[] = [];
  for (const line of shown.split('\n').filter((each) => each.trim() !== '')) {
    const pattern = line
      .trim()
      .split('…')
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('[^\\n]*?');
    const found = new RegExp(pattern).exec(rest);
    if (!found) missing.push(line);
    else rest = rest.slice(found.index + found[0].length);
  }
  return missing;
}
