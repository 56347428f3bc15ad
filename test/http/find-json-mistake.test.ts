import { describe, expect, it } from 'vitest';
import { findJsonMistake } from '../../src/http/requests/read-body.js';

describe('where a text stops being JSON', () => {
  it.each([
    ['', 0],
    ['  ', 2],
    ['{"a":1} x', 8],
    ['{"a":1}}', 7],
    ["{'a':1}", 1],
    ['{"a":01}', 5],
    ['{"a":1.}', 5],
    ['{"a":"\\q"}', 5],
    ['{"a":"x\ny"}', 5],
    ['[1,2', 4],
    ['[1,]', 3],
    ['[1}', 2],
    ['{"a" 1}', 5],
    ['{"a":1,}', 7],
    ['{,}', 1],
    ['nul', 0],
    ['"open', 0],
    ['1 2', 2],
  ])('%j: %d', (text, place) => {
    expect(() => JSON.parse(text) as unknown).toThrow();
    expect(findJsonMistake(text)).toBe(place);
  });

  it('is nowhere exactly where the text can be parsed', () => {
    const seeds = ['{"a":[1,-2.5e+3,{"b":null}],"c":"x\\u00e9\\n","d":{}}', ' [ ] ', '[[],[{}],true,false,"",0,-0]'];
    const pieces = [
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      'u0041',
      '0',
      '1',
      '-',
      '.',
      'e',
      '+',
      't',
      'null',
      ' ',
      '\n',
    ];
    let state = 7;
    const below = (limit: number): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state % limit;
    };
    for (let round = 0; round < 30_000; round++) {
      let text = seeds[below(seeds.length)]!;
      for (let changes = below(4); changes > 0; changes--) {
        const at = below(text.length + 1);
        text = text.slice(0, at) + pieces[below(pieces.length)]! + text.slice(at + below(3));
      }
      expect([text, findJsonMistake(text) === null]).toEqual([text, isJson(text)]);
    }
  });

  it('is found in a text of any depth and length', () => {
    expect(findJsonMistake('['.repeat(500_000))).toBe(500_000);
    expect(findJsonMistake(`{"a":"${'\\n'.repeat(250_000)}${'x'.repeat(500_000)}"} `)).toBe(null);
    expect(findJsonMistake(`{"a":"${'\\n'.repeat(400_000)}`)).toBe(5);
  });
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
