type Credential = { response: Record<string, unknown> } & Record<string, unknown>;

const bytes = (value: unknown): Buffer => Buffer.from(String(value), 'base64url');
const coded = (value: string | Buffer): string => Buffer.from(value).toString('base64url');

/** CBOR that says more than it has, or has more than anybody would say. */
const HOSTILE_CBOR = [
  Buffer.alloc(0),
  Buffer.from([0xff]),
  Buffer.from([0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
  Buffer.from([0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
  Buffer.from([0xbf, 0x61, 0x61]),
  Buffer.from([0xa2, 0x63, 0x66, 0x6d, 0x74, 0x00, 0x63, 0x66, 0x6d, 0x74, 0x00]),
  Buffer.from([0xf7]),
  Buffer.from([0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0]),
  Buffer.alloc(3_000, 0x81),
];

/** Texts that stand where base64url is wanted. */
const NO_BASE64URL: readonly unknown[] = ['', '=', '+/+/', '\u0000', '{}', '\ud800', 'A', null, 7, [], { length: 1 }];

/** What stands in `clientDataJSON` instead of what a browser writes. */
const HOSTILE_CLIENT_DATA = [
  'null',
  '[]',
  '7',
  '{',
  '{"type":"webauthn.get"}',
  '{"__proto__":{"type":"webauthn.get"}}',
  `${'['.repeat(2_000)}${']'.repeat(2_000)}`,
];

/** Differences from a right answer of an authenticator, each of which makes it a wrong one. */
export function spoil(right: object): Credential[] {
  const credential = right as Credential;
  const within = (fields: Record<string, unknown>): Credential => ({
    ...credential,
    response: { ...credential.response, ...fields },
  });
  const client = JSON.parse(bytes(credential.response.clientDataJSON).toString()) as Record<string, unknown>;
  const clientData = (fields: Record<string, unknown>): Credential =>
    within({ clientDataJSON: coded(JSON.stringify({ ...client, ...fields })) });
  const binary = ['authenticatorData', 'signature', 'attestationObject'].filter((name) => name in credential.response);
  return [
    { ...credential, response: {} },
    { ...credential, id: 'AAAA' },
    { ...credential, rawId: 'AAAA' },
    clientData({ type: 'webauthn.other' }),
    clientData({ origin: 'https://evil.example' }),
    clientData({ origin: null }),
    clientData({ challenge: 'AAAA' }),
    clientData({ challenge: { $gt: '' } }),
    clientData({ challenge: 7 }),
    ...HOSTILE_CLIENT_DATA.map((text) => within({ clientDataJSON: coded(text) })),
    ...['clientDataJSON', ...binary].flatMap((name) => NO_BASE64URL.map((value) => within({ [name]: value }))),
    ...binary.flatMap((name) => {
      const whole = bytes(credential.response[name]);
      const flipped = Buffer.from(whole);
      // In an attestation before its data, which holds the model of the device, and that is anybody's.
      flipped[name === 'attestationObject' ? 2 : flipped.length >> 1]! ^= 0x01;
      const others = [whole.subarray(0, whole.length >> 1), whole.subarray(1), flipped, ...HOSTILE_CBOR];
      return others.map((each) => within({ [name]: coded(each) }));
    }),
  ];
}

/** Id tokens that are none, though some were made of a right one. */
export function spoilToken(right: string): string[] {
  const [head, payload, signature] = right.split('.') as [string, string, string];
  const header = JSON.parse(bytes(head).toString()) as Record<string, unknown>;
  const claims = JSON.parse(bytes(payload).toString()) as Record<string, unknown>;
  const under = (fields: Record<string, unknown>, by = signature): string =>
    `${coded(JSON.stringify({ ...header, ...fields }))}.${payload}.${by}`;
  const saying = (fields: unknown): string => `${head}.${coded(JSON.stringify(fields))}.${signature}`;
  return [
    '.',
    '..',
    'a.b.c',
    `${head}.${payload}`,
    `${head}.${payload}.`,
    `${right}.${signature}`,
    `${right}.a.b`,
    `..${signature}`,
    `${coded('null')}.${payload}.${signature}`,
    `${coded('{')}.${payload}.${signature}`,
    `!!.${payload}.${signature}`,
    `${head}.${coded('[]')}.${signature}`,
    `${head}.${payload}.${'A'.repeat(signature.length)}`,
    under({ alg: 'none' }, ''),
    under({ alg: 'HS256' }),
    under({ alg: 7 }),
    under({ alg: { $gt: '' } }),
    under({ kid: 'unknown' }),
    under({ kid: { $gt: '' } }),
    under({ kid: undefined, jku: 'http://127.0.0.1:9/keys' }),
    under({ jwk: { kty: 'oct', k: 'AAAA' } }),
    under({ crit: ['b64'], b64: false }),
    under({ crit: 7 }),
    under({ zip: 'DEF' }),
    saying({ ...claims, sub: 'somebody else' }),
    saying({ ...claims, exp: 1e300 }),
    saying([claims]),
    saying(null),
  ];
}
