/** The differences that count: letters alone (1), accents as well (2), upper and lower case as well (3). */
export type Strength = 1 | 2 | 3;

/*
 * A key is up to three texts with a zero between them: the letters, their accents, their cases. The units of the last
 * two stand for one letter each; those of plain lower-case letters at the end are left out, and so are empty parts at
 * the end of the key. Every unit is above zero, so that a key that ends sooner comes first.
 */

/** One character's part in each of the three texts. */
interface Piece {
  readonly letters: string;
  readonly accents: string;
  readonly cases: string;
}

const NOTHING: Piece = { letters: '', accents: '', cases: '' };
const SEPARATOR = '\0';
/** The unit of a letter that has no accent, or is neither upper case nor a variant. */
const PLAIN = '\u0002';
const UPPER = '\u0003';
const VARIANT = '\u0004';
const UPPER_VARIANT = '\u0005';

/** Everything that is no letter, by the unit it begins with; Latin-1 in the order of Unicode's root collation. */
const CLASSES: readonly { unit: string; pattern: RegExp; order: string }[] = [
  { unit: '\u0002', pattern: /[\p{Z}\t\n\v\f\r\u0085]/u, order: '\t\n\v\f\r\u0085 ' },
  { unit: '\u0003', pattern: /\p{P}/u, order: '_-,;:!¡?¿.·\'"«»()[]{}§¶@*/\\&#%' },
  { unit: '\u0005', pattern: /\p{Sc}/u, order: '¤¢$£¥' },
  { unit: '\u0004', pattern: /\p{S}/u, order: '`´^¯¨¸°©®+±÷×<=>¬|¦~' },
];
const IGNORED = /[\p{Cc}\p{Default_Ignorable_Code_Point}]/u;
/** Marks that change a letter's accent; those of other scripts are letters of their own. */
const MARKS =
  /[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\u3099\u309a\ufe20-\ufe2f]/u;
/** The frequent marks in their order; the others follow by their code points. */
const MARK_ORDER = '\u0301\u0300\u0306\u0302\u030c\u030a\u0342\u0308\u030b\u0303\u0307\u0338\u0327\u0328\u0304\u0335';
/**
 * Letters that Unicode does not take apart although they compare as others with a mark, some with one for this alone.
 */
const COMPOSED: Readonly<Record<string, string>> = {
  ø: 'o\u0338',
  đ: 'd\u0335',
  ð: 'd\u036f',
  ħ: 'h\u0335',
  ł: 'l\u0335',
  ſ: 's\u036f',
  ß: 's\u036fs',
  æ: 'a\u036fe',
  œ: 'o\u036fe',
};
/** Letters of their own, by the one that they come behind. */
const BEHIND: Readonly<Record<string, string>> = { ŋ: 'n', ŧ: 't', ı: 'i', ĸ: 'q', þ: 'z' };
const BEHIND_ALL = '\u{10ffff}';
/** A form of another letter that its case does not tell. */
const VARIANTS: Readonly<Record<string, string>> = { ς: 'σ' };

const MAX_PIECES = 10_000;
const pieces = new Map<string, Piece>();

/**
 * A text that compares, by code points, as `text` does at the strength: equal for what is not told apart. The order is
 * that of Unicode's root collation for Latin-1 and European letters with their accents; what else there is follows by
 * its code point. The same for every version of Node, so that it may be stored.
 */
export function textKey(text: string, strength: Strength): string {
  let letters = '';
  let accents = '';
  let cases = '';
  for (const char of text.normalize('NFD')) {
    const piece = pieceOf(char);
    letters += piece.letters;
    if (strength > 1) accents += piece.accents;
    if (strength > 2) cases += piece.cases;
  }
  accents = withoutPlainEnd(accents);
  cases = withoutPlainEnd(cases);
  if (cases !== '') return letters + SEPARATOR + accents + SEPARATOR + cases;
  return accents === '' ? letters : letters + SEPARATOR + accents;
}

function withoutPlainEnd(units: string): string {
  let end = units.length;
  while (end > 0 && units[end - 1] === PLAIN) end--;
  return units.slice(0, end);
}

function pieceOf(char: string): Piece {
  let piece = pieces.get(char);
  if (piece === undefined) {
    piece = makePiece(char);
    if (pieces.size >= MAX_PIECES) pieces.clear();
    pieces.set(char, piece);
  }
  return piece;
}

function makePiece(char: string): Piece {
  const lower = char.toLowerCase();
  if (Object.hasOwn(COMPOSED, lower)) {
    const parts = COMPOSED[lower]!;
    return joined(lower === char ? parts : parts.toUpperCase(), null);
  }
  if (Object.hasOwn(VARIANTS, char)) return joined(VARIANTS[char]!, char);
  const plain = char.normalize('NFKD');
  // A mark that stands alone, such as a diaeresis, is no space.
  if (plain !== char && (!plain.startsWith(' ') || plain === ' ')) return joined(plain, char);
  for (const { unit, pattern, order } of CLASSES) {
    if (!pattern.test(char)) continue;
    const rank = order.indexOf(char);
    return { letters: unit + (rank < 0 ? char : String.fromCharCode(rank + 1)), accents: PLAIN, cases: PLAIN };
  }
  if (IGNORED.test(char)) return NOTHING;
  if (MARKS.test(char)) {
    const rank = MARK_ORDER.indexOf(char);
    return { letters: '', accents: rank < 0 ? char : String.fromCharCode(rank + 3), cases: '' };
  }
  const letters = Object.hasOwn(BEHIND, lower) ? BEHIND[lower]! + BEHIND_ALL : lower;
  return { letters, accents: PLAIN, cases: lower === char ? PLAIN : UPPER };
}

/** The pieces of what a character stands for; `variant` is the character where this is a difference of case. */
function joined(parts: string, variant: string | null): Piece {
  let { letters, accents, cases } = NOTHING;
  for (const part of parts) {
    const piece = makePiece(part);
    letters += piece.letters;
    accents += piece.accents;
    if (piece.cases === '' || variant === null) cases += piece.cases;
    else cases += (piece.cases.startsWith(UPPER) ? UPPER_VARIANT : VARIANT) + variant;
  }
  return { letters, accents, cases };
}
