/** Up to this many comparisons even the worst case of the built-in search takes no noticeable time. */
const HARMLESS = 10_000_000;

/** Finds the places of one text in others. */
export interface TextSearch {
  /** The first place at or after `from`, or -1. */
  indexIn(text: string, from: number): number;
}

/**
 * Prepares a search whose time is linear in both lengths (Knuth, Morris, Pratt): the built-in one can take their
 * product, and pipelines can make long texts of few different characters.
 */
export function openTextSearch(wanted: string): TextSearch {
  let borders: Int32Array | undefined;
  return {
    indexIn(text, from) {
      if (wanted.length * (text.length - from) <= HARMLESS) return text.indexOf(wanted, from);
      borders ??= bordersOf(wanted);
      for (let at = from, matched = 0; at < text.length; at++) {
        const unit = text.charCodeAt(at);
        while (matched > 0 && wanted.charCodeAt(matched) !== unit) matched = borders[matched - 1]!;
        if (wanted.charCodeAt(matched) === unit) matched++;
        if (matched === wanted.length) return at - matched + 1;
      }
      return -1;
    },
  };
}

/** For each beginning of a text, the length of its longest proper part that both starts and ends it. */
function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length);
  for (let at = 1, length = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    while (length > 0 && text.charCodeAt(length) !== unit) length = borders[length - 1]!;
    if (text.charCodeAt(length) === unit) length++;
    borders[at] = length;
  }
  return borders;
}
