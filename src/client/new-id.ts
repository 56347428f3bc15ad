/** An `_id` for a new document: 24 hexadecimal digits, of which the first eight are the time. */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(8))].reduce(
    (digits, byte) => digits + (byte + 256).toString(16).slice(1),
    Math.floor(Date.now() / 1000).toString(16),
  );
}
