export interface ByteRange {
  start: number;
  /** Inclusive. */
  end: number;
}

/**
 * The one range that a `Range` header asks for; null = the whole file (no header, several ranges, another unit or a
 * malformed one: RFC 9110 lets a server ignore those), 'unsatisfiable' = 416.
 */
export function parseByteRange(header: string, size: number): ByteRange | 'unsatisfiable' | null {
  const match = /^bytes=(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))$/.exec(header);
  if (!match) return null;
  const [, from, to, last] = match;
  if (last !== undefined) {
    const length = Math.min(Number(last), size);
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 };
  }
  const start = Number(from);
  const end = to ? Math.min(Number(to), size - 1) : size - 1;
  if (to && Number(to) < start) return null;
  return start >= size ? 'unsatisfiable' : { start, end };
}
