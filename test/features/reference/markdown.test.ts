import { describe, expect, it } from 'vitest';
import { renderMarkdown } from '../../../src/features/reference/markdown.js';

const render = (text: string): string => renderMarkdown(text, (target) => `/to/${target}`);

describe('renderMarkdown', () => {
  it.each([
    ['a heading, with an address', '## Get, update', '<h2 id="get-update">Get, update</h2>'],
    ['a paragraph of several lines', 'one\ntwo', '<p>one two</p>'],
    ['code and strong words', '`a<b` is **big**', '<p><code>a&lt;b</code> is <strong>big</strong></p>'],
    ['a link, its words in code', 'see [`x`](y.md)', '<p>see <a href="/to/y.md"><code>x</code></a></p>'],
    ['a list', '- one\n- two', '<ul>\n<li>one</li>\n<li>two</li>\n</ul>'],
    [
      'a list, its items of several lines',
      '- one\n  two\n- `x`\n\nthree',
      '<ul>\n<li>one two</li>\n<li><code>x</code></li>\n</ul>\n<p>three</p>',
    ],
    ['a numbered list of several lines', '1. one\n   two\n2. three', '<ol>\n<li>one two</li>\n<li>three</li>\n</ol>'],
    ['a numbered list', '1. one\n2. two', '<ol>\n<li>one</li>\n<li>two</li>\n</ol>'],
    [
      'an example',
      '```sh\na <b> | # c\n```',
      '<div class="example"><pre tabindex="0"><code>a &lt;b&gt; | # c</code></pre></div>',
    ],
    ['an output', '```text\nok\n```', '<div class="output"><pre tabindex="0"><code>ok</code></pre></div>'],
    [
      'a table, with a bar in a cell',
      '| a | b |\n| - | - |\n| `x\\|y` | 2 |',
      '<div class="wide" tabindex="0"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td><code>x|y</code></td><td>2</td></tr>\n</tbody></table></div>',
    ],
    ['nothing for a comment', '<!-- made -->', ''],
  ])('renders %s', (_what, text, html) => {
    expect(render(text)).toBe(html);
  });

  it('shows HTML as text, and lets no address out of its attribute', () => {
    expect(render('<script>alert(1)</script>')).toBe('<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>');
    expect(render('[x](y"onclick=z)')).toBe('<p><a href="/to/y&quot;onclick=z">x</a></p>');
  });
});
