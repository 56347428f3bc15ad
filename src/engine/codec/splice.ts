import { BsonFormatError, skipValue } from './elements.js';
import { type Doc, setField } from './document.js';
import { encodeDocument } from './encode.js';

/** A top-level field whose stored element has to go, with the bytes of what takes its place. */
interface Replacement {
  readonly name: Buffer;
  /** Undefined when the field is removed, or has its new value already. */
  element: Buffer | undefined;
}

/** Top-level fields whose values are not the very same. */
export function changedNames(before: Doc, after: Doc): Set<string> {
  const names = new Set<string>();
  for (const name of Object.keys(before)) if (before[name] !== after[name]) names.add(name);
  for (const name of Object.keys(after)) if (!Object.hasOwn(before, name)) names.add(name);
  return names;
}

/**
 * The stored document `bytes` with the `touched` top-level fields as `after` has them: a new field comes last, one that
 * is not there any more is left out, and everything else is copied as it is. Throws BsonValueError for a value that has
 * no BSON form.
 */
export function spliceDocument(bytes: Buffer, after: Doc, touched: ReadonlySet<string>): Buffer {
  const changed: Doc = {};
  const gone: Replacement[] = [];
  for (const name of touched) {
    if (Object.hasOwn(after, name)) setField(changed, name, after[name]);
    else gone.push({ name: Buffer.from(name), element: undefined });
  }
  const fresh = encodeDocument(changed);
  const replacements = [...readElements(fresh), ...gone];
  const find = finderOf(replacements);
  const result = Buffer.allocUnsafe(bytes.length + fresh.length);
  let written = 4;
  let copied = 4;
  let at = 4;
  for (;;) {
    const type = bytes[at];
    if (type === 0) break;
    if (type === undefined) throw new BsonFormatError('document ends too early');
    let nameEnd = at + 1;
    while (bytes[nameEnd] !== 0) if (++nameEnd >= bytes.length) throw new BsonFormatError('field name runs over');
    const end = skipValue(bytes, type, nameEnd + 1);
    const replacement = find(bytes, at + 1, nameEnd);
    if (replacement !== undefined) {
      written += bytes.copy(result, written, copied, at);
      if (replacement.element !== undefined) written += replacement.element.copy(result, written);
      replacement.element = undefined;
      copied = end;
    }
    at = end;
  }
  written += bytes.copy(result, written, copied, at);
  for (const { element } of replacements) if (element !== undefined) written += element.copy(result, written);
  result[written++] = 0;
  result.writeInt32LE(written, 0);
  return result.subarray(0, written);
}

function readElements(bytes: Buffer): Replacement[] {
  const elements: Replacement[] = [];
  let at = 4;
  while (bytes[at] !== 0) {
    const nameEnd = bytes.indexOf(0, at + 1);
    const end = skipValue(bytes, bytes[at]!, nameEnd + 1);
    elements.push({ name: bytes.subarray(at + 1, nameEnd), element: bytes.subarray(at, end) });
    at = end;
  }
  return elements;
}

const FEW_REPLACEMENTS = 16;

/** How to find the replacement whose name stands between two places. */
function finderOf(
  replacements: readonly Replacement[],
): (bytes: Buffer, from: number, to: number) => Replacement | undefined {
  if (replacements.length <= FEW_REPLACEMENTS) {
    return (bytes, from, to) => findReplacement(replacements, bytes, from, to);
  }
  const byName = new Map(replacements.map((replacement) => [replacement.name.latin1Slice(), replacement]));
  return (bytes, from, to) => byName.get(bytes.latin1Slice(from, to));
}

function findReplacement(
  replacements: readonly Replacement[],
  bytes: Buffer,
  from: number,
  to: number,
): Replacement | undefined {
  for (const replacement of replacements) {
    const { name } = replacement;
    if (name.length !== to - from) continue;
    let n = 0;
    while (n < name.length && bytes[from + n] === name[n]) n++;
    if (n === name.length) return replacement;
  }
  return undefined;
}
