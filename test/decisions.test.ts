import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const FOLDER = join(ROOT, 'src', 'decisions');
const map = readFileSync(join(ROOT, 'src', 'README.md'), 'utf8');

const topics = readdirSync(FOLDER).map((name) => {
  const text = readFileSync(join(FOLDER, name), 'utf8');
  return { name, text, numbers: [...text.matchAll(/^## (\d+) \S/gm)].map(([, number]) => Number(number)) };
});
const numbers = topics.flatMap((topic) => topic.numbers);
const sources = ['src', 'cli', 'test']
  .flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  .filter((path) => /\.(ts|tsx)$/.test(path));

describe('src/decisions', () => {
  it('has at most 60 entries, each with a number of its own, in order within a file', () => {
    expect(numbers.length).toBeLessThanOrEqual(60);
    expect([...new Set(numbers)]).toEqual(numbers);
    for (const topic of topics) {
      expect(topic.text.match(/^## /gm), topic.name).toHaveLength(topic.numbers.length);
      expect(topic.numbers, topic.name).toEqual([...topic.numbers].sort((a, b) => a - b));
    }
  });

  it('can be read within half an hour: at most 6,000 words', () => {
    expect(topics.flatMap(({ text }) => text.split(/\s+/).filter(Boolean)).length).toBeLessThanOrEqual(6000);
  });

  it('is listed by the map of the source, file by file', () => {
    const listed = [...map.matchAll(/\(decisions\/(\S+\.md)\)/g)].map(([, name]) => name);
    expect(listed.sort()).toEqual(topics.map(({ name }) => name).sort());
  });

  it('has every decision that comments and other decisions cite', () => {
    const texts = [...topics, ...sources.map((path) => ({ name: path, text: readFileSync(join(ROOT, path), 'utf8') }))];
    const unknown = texts.flatMap(({ name, text }) =>
      [...text.matchAll(/\bdecisions? (\d+)(?: and (\d+))?/g)]
        .flatMap(([, ...cited]) => cited.filter((number) => number !== undefined).map(Number))
        .filter((number) => !numbers.includes(number))
        .map((number) => `${name}: decision ${number}`),
    );
    expect(unknown).toEqual([]);
  });
});

describe('the map of the source and the decisions', () => {
  it('name every feature', () => {
    const order = /^Features, bottom up: (.*?)\. /ms.exec(map)![1]!;
    expect(order.split(/,\s|\s·\s/)).toEqual(expect.arrayContaining(readdirSync(join(ROOT, 'src', 'features'))));
  });

  it.each([{ name: 'README.md', text: map }, ...topics])('name files that there are: $name', ({ text }) => {
    const named = [...text.matchAll(/`([\w./-]+\.ts)`/g)].map(([, path]) => path!.replace(/^(\.\.|…)\//, ''));
    const missing = named.filter(
      (path) => !sources.some((source) => source === path || source.endsWith(`/${path}`)) && !isAtRoot(path),
    );
    expect(missing).toEqual([]);
  });
});

function isAtRoot(path: string): boolean {
  return readdirSync(ROOT).includes(basename(path));
}
