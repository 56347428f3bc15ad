const CRLF = '\r\n';

/** Events as bytes, made once for all whom they are sent to. */
export class EventBytes {
  /** As one chunk of an HTTP/1.1 body. */
  readonly chunk: Buffer;
  readonly #start: number;

  /** A text in `latin1` stands for bytes that are UTF-8 already. */
  constructor(text: string) {
    const size = text.length.toString(16) + CRLF;
    this.#start = size.length;
    this.chunk = Buffer.from(size + text + CRLF, 'latin1');
  }

  /** As a part of a body that has no chunks, that of HTTP/1.0. */
  get plain(): Buffer {
    return this.chunk.subarray(this.#start, -CRLF.length);
  }

  /** Bytes of the events alone. */
  get length(): number {
    return this.chunk.length - this.#start - CRLF.length;
  }
}
