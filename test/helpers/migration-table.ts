import { readGuides } from './guide-examples.js';

/** What the guide "Migration from the hosted service" says of a function: `works` or `differs`. */
export type Promised = Map<string, string>;

/**
 * The tables of the guide below `heading`, by the full names of what they list: of `auth.login`, `me` the second is
 * `auth.me` too, as is that of `auth`: `me`.
 */
export function readMigrationTable(heading: string): Promised {
  const section = readGuides()
    .get('migration.md')!
    .split(/^## /m)
    .find((part) => part.startsWith(`${heading}\n`))!;
  const promised: Promised = new Map();
  for (const row of section.split('\n').filter((line) => line.startsWith('| `'))) {
    const [names, does] = row
      .split('|')
      .slice(1, 3)
      .map((cell) => cell.trim()) as [string, string];
    let prefix = '';
    for (const [, quoted, colon] of names
      .replace(/ \(with[^)]*\)/g, '')
      .matchAll(/`(?:new )?([\w.]+)(?:\(\))?`(:?)/g)) {
      const name = quoted!.includes('.') ? quoted! : prefix + quoted!;
      if (promised.has(name) && !colon) throw new Error(`${name} stands twice under ${heading}`);
      if (!promised.has(name)) promised.set(name, does);
      if (colon) prefix = `${name}.`;
      else if (/^[a-z]\w*\./.test(quoted!)) prefix = quoted!.replace(/\w+$/, '');
    }
  }
  return promised;
}
