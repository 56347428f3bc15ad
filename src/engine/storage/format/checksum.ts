/**
 * The checksum of stored bytes: 32 bits, not against forgers but against what disks and cables do. Two sums run over
 * the even and two over the odd words, as in Fletcher's; that costs a third of a call to zlib's CRC for a usual
 * document.
 */
let lastBytes: Uint8Array | undefined;
let lastStart = 0;
let lastBuffer: ArrayBufferLike | undefined;
let lastWords: Int32Array = new Int32Array(0);

/**
 * Makes `lastWords` and `lastStart` say where the bytes are. Lmdb hands nearly all values over in one and the same
 * object: asking an array for its buffer takes as long as the sum of a small value.
 */
function locate(bytes: Uint8Array): void {
  const { buffer } = bytes;
  if (buffer !== lastBuffer) {
    lastBuffer = buffer;
    lastWords = new Int32Array(buffer, 0, buffer.byteLength >>> 2);
  }
  lastBytes = bytes;
  lastStart = bytes.byteOffset >>> 2;
}

/** The checksum of the first `length` bytes, continued from `seed`: the checksum of what stands before them, or 0. */
export function checksum(seed: number, bytes: Uint8Array, length: number): number {
  if (bytes !== lastBytes) {
    if ((bytes.byteOffset & 3) !== 0) return checksum(seed, Uint8Array.prototype.slice.call(bytes, 0, length), length);
    locate(bytes);
  }
  return checksumOfWords(seed, lastWords, lastStart, bytes, length);
}

/** As `checksum`, for bytes whose buffer is seen as `words`, from the word at `start` on. */
export function checksumOfWords(
  seed: number,
  words: Int32Array,
  start: number,
  bytes: Uint8Array,
  length: number,
): number {
  let a = seed;
  let b = length;
  let c = 0;
  let d = 0;
  let at = start;
  const end = start + (length >>> 2);
  for (const fours = end - 3; at < fours; at += 4) {
    a = (a + words[at]!) | 0;
    c = (c + words[at + 1]!) | 0;
    b = (b + a) | 0;
    d = (d + c) | 0;
    a = (a + words[at + 2]!) | 0;
    c = (c + words[at + 3]!) | 0;
    b = (b + a) | 0;
    d = (d + c) | 0;
  }
  for (; at < end; at++) {
    a = (a + words[at]!) | 0;
    b = (b + a) | 0;
  }
  let rest = 0;
  for (let n = (end - start) << 2; n < length; n++) rest = (rest << 8) | bytes[n]!;
  a = (a + rest) | 0;
  b = (b + a) | 0;
  let sum = Math.imul(a ^ (a >>> 15), 0x9e3779b1) ^ b;
  sum = Math.imul(sum ^ (sum >>> 15), 0x85ebca77) ^ c;
  sum = Math.imul(sum ^ (sum >>> 13), 0xc2b2ae3d) ^ d;
  sum = Math.imul(sum ^ (sum >>> 16), 0x27d4eb2f);
  return sum ^ (sum >>> 15);
}
