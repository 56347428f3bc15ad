import Mustache from 'mustache';
import { describe, expect, it } from 'vitest';
import { renderTemplate } from '../../../src/features/mail/render-template.js';

const html = (source: string, variables: Record<string, unknown>) =>
  renderTemplate({ subject: 's', html: source }, variables).html;

describe('placeholders of a mail template', () => {
  const rows: [string, string, Record<string, unknown>, string][] = [
    ['escapes {{x}}', '{{x}}', { x: '<b>"&' }, '&lt;b&gt;&quot;&amp;'],
    ['leaves {{{x}}} as it is', '{{{x}}}', { x: '<b>hi</b>' }, '<b>hi</b>'],
    ['reads nested values', '{{a.b}}', { a: { b: 1 } }, '1'],
    ['writes numbers and booleans', '{{n}} {{t}}', { n: 0, t: false }, '0 false'],
    ['writes nothing for a missing name', '[{{nope}}]', {}, '[]'],
    ['writes nothing for objects, lists and null', '[{{o}}{{l}}{{z}}]', { o: {}, l: [1], z: null }, '[]'],
    ['never reads inherited properties', '[{{constructor}}{{a.__proto__}}{{a.toString}}]', { a: {} }, '[]'],
    ['never calls functions', '[{{f}}]', { f: () => 'called' }, '[]'],
    ['does not fill placeholders that come with a value', '{{x}}', { x: '{{y}}', y: 'leak' }, '{{y}}'],
    [
      'keeps http addresses in variables named like one',
      '{{{resetUrl}}}',
      { resetUrl: 'https://a.test/x?y=1' },
      'https://a.test/x?y=1',
    ],
    ['replaces other schemes there', '{{{resetUrl}}}', { resetUrl: 'javascript:alert(1)' }, '#'],
    ['replaces what is not an address there', '{{{link}}}', { link: 'no address' }, '#'],
    [
      'encodes what would leave an attribute',
      '{{{url}}}',
      { url: 'https://a.test/"onclick=x' },
      'https://a.test/%22onclick=x',
    ],
    ['replaces dangerous schemes under any name', '{{{x}}}', { x: ' JavaScript:alert(1)' }, '#'],
    ...[
      '\u0001javascript:x',
      'java\tscript:x',
      'j\navascript:x',
      'java\u00adscript:x',
      '\ufeffjavascript:x',
      'javascript\t:x',
    ].map((x): [string, string, Record<string, unknown>, string] => [
      `replaces a dangerous scheme hidden as ${JSON.stringify(x)}`,
      '<a href="{{x}}">',
      { x },
      '<a href="#">',
    ]),
    ['leaves text with a colon alone', '{{{x}}}', { x: 'Note: it works' }, 'Note: it works'],
  ];
  it.each(rows)('%s', (_what, source, variables, expected) => {
    expect(html(source, variables)).toBe(expected);
  });

  it('escapes nothing in subject and text, which are not HTML', () => {
    const rendered = renderTemplate({ subject: '{{x}}', text: '{{x}}' }, { x: 'Q&A' });
    expect(rendered).toEqual({ subject: 'Q&A', text: 'Q&A' });
  });

  it('are forgotten with the text once it is rendered', () => {
    const texts = ['{{n}} one', '{{n}} two'];
    for (const text of texts) renderTemplate({ subject: text, text }, { n: 1 });
    expect(texts.map((text) => Mustache.templateCache?.get(`${text}:{{:}}`))).toEqual([undefined, undefined]);
  });

  it.each(['{{#each}}x{{/each}}', '{{^x}}y{{/x}}', '{{> partial}}', '{{=<% %>=}}<%x%>', '{{unclosed'])(
    'refuses %s',
    (source) => {
      expect(() => html(source, {})).toThrow(/template/i);
    },
  );
});

describe('a part of a mail with too many placeholders', () => {
  it('is refused before it is read', () => {
    expect(html('{{a}}'.repeat(5000), { a: 'b' })).toBe('b'.repeat(5000));
    expect(() => html('{{a}}'.repeat(5001), { a: 'b' })).toThrow('at most 5000 placeholders');
  });
});

describe('a long value of a mail', () => {
  /** Processor time in milliseconds. */
  const timeOf = (run: () => unknown): number => {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  const long = 500_000;
  const shortened: [string, string][] = [
    ['u', `data:${'x'.repeat(long)}`],
    ['url', 'x x'.repeat(long / 3)],
    ['url', `https://a.test/${'\t'.repeat(long)}`],
  ];

  it.each(
    shortened.flatMap(([name, value]) => [`{{${name}}}`, `{{{${name}}}}`].map((as) => [as, name, value] as const)),
  )('is judged once, however many %s stand for it', (as, name, value) => {
    let rendered: string | undefined;
    const ms = timeOf(() => (rendered = html(as.repeat(5000), { [name]: value })));
    expect(rendered!.length).toBe(5000 * html(as, { [name]: value })!.length);
    expect(ms).toBeLessThan(100);
  });

  it('that grows when it is escaped is refused before all of it is', () => {
    expect(html('{{x}}', { x: '<'.repeat(125_000) })).toBe('&lt;'.repeat(125_000));
    for (const x of ['<'.repeat(125_001), '<'.repeat(1_000_000), 'x'.repeat(500_001)]) {
      expect(() => html('{{x}}', { x })).toThrow('too large');
    }
  });
});
