/** A way for the bytes of a body to arrive. */
export interface Form {
  name: string;
  /** Headers that say how long the body is. */
  length: (body: string) => string;
  /** What is written to the socket, each by itself. */
  writes: (body: string) => Iterable<string>;
}

export interface CountedForm extends Form {
  /** How many pieces a parser that takes everything would hand on. */
  events: (body: string) => number;
}

export const CHUNKED = (): string => 'Transfer-Encoding: chunked\r\n';
export const DECLARED = (body: string): string => `Content-Length: ${body.length}\r\n`;

export function* cut(body: string, size: number): Iterable<string> {
  for (let at = 0; at < body.length; at += size) yield body.slice(at, at + size);
}
export const chunk = (part: string, more = ''): string => `${part.length.toString(16)}${more}\r\n${part}\r\n`;
export const chunked = (name: string, size: number, more = ''): CountedForm => ({
  name,
  length: CHUNKED,
  *writes(body) {
    const chunks = [...cut(body, size)].map((part) => chunk(part, more));
    yield* cut([...chunks, '0\r\n\r\n'].join(''), 64 * 1024);
  },
  events: (body) => Math.ceil(body.length / size),
});

/** Each makes many events of few bytes. */
export const TINY: readonly CountedForm[] = [
  chunked('one byte a chunk', 1),
  chunked('three bytes a chunk', 3),
  chunked('fifty bytes a chunk', 50),
  chunked('one byte a chunk with an extension', 1, ';a=b'),
  {
    name: 'one byte a chunk, its length with zeros in front',
    length: CHUNKED,
    *writes(body) {
      yield* cut([...cut(body, 1)].map((part) => `0000${chunk(part)}`).join(''), 64 * 1024);
    },
    events: (body) => body.length,
  },
  {
    name: 'one byte a packet',
    length: DECLARED,
    writes: (body) => cut(body.slice(0, 20_000), 1),
    events: () => 20_000,
  },
];

/** As browsers, phones and proxies send bodies. */
export const HONEST: readonly CountedForm[] = [
  { name: 'whole', length: DECLARED, writes: (body) => [body], events: () => 1 },
  {
    name: 'in packets of a phone',
    length: DECLARED,
    writes: (body) => cut(body, 1_400),
    events: (body) => Math.ceil(body.length / 1_400),
  },
  chunked('in chunks of a page', 64 * 1024),
  chunked('in records of TLS', 16 * 1024),
  chunked('in chunks of a packet', 1_400),
  chunked('in chunks of a kilobyte', 1_024),
];

/** As long as Node takes a head, and as many as one connection may have wait: a megabyte. */
const HEADS = 64;
const HEAD_BYTES = 15_800;
const ENTRIES = [
  'x',
  'a,',
  ',',
  ';a=1',
  'a/b;q=0,',
  '*/*,',
  '"a",',
  'W/"a" ',
  '0-1,',
  'a=b; ',
  '1.1.1.1,',
  'a.',
  '%41',
];
const LISTED = [
  ...['accept', 'accept-encoding', 'authorization', 'content-type', 'cookie', 'if-match', 'if-none-match'],
  ...['if-range', 'last-event-id', 'origin', 'range', 'user-agent', 'x-api-key', 'x-forwarded-for', 'x-request-id'],
];

/** Requests on one connection whose heads are as long as they may be, by header and what it repeats. */
export const LONG_HEADS: readonly (readonly [name: string, text: string])[] = LISTED.flatMap((header) =>
  ENTRIES.map((entry) => {
    const value = entry.repeat(HEAD_BYTES / entry.length).trim();
    const head = `GET / HTTP/1.1\r\nHost: x\r\n${header}: ${value}\r\n`;
    return [
      `${header} of ${entry.trim()}`,
      `${`${head}\r\n`.repeat(HEADS - 1)}${head}Connection: close\r\n\r\n`,
    ] as const;
  }),
);

/** Requests of many parts beside a body: what they are, their text, the status that refuses them. */
export const CROWDED: readonly (readonly [name: string, text: string, status: string])[] = [
  ['300 header lines', `GET / HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(300)}\r\n`, '431'],
  ['4,000 empty header lines', `GET / HTTP/1.1\r\nHost: x\r\n${'a:\r\n'.repeat(4_000)}\r\n`, '431'],
  [
    'trailers of 64 kB',
    `POST /api/nothing HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${'a: b\r\n'.repeat(11_000)}\r\n`,
    '4(31|04)',
  ],
  [
    'chunk extensions of 64 kB',
    `POST /api/nothing HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;${'a'.repeat(65_536)}\r\nx\r\n`,
    '4(00|04|13)',
  ],
];
