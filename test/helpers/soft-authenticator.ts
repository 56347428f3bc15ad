import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

type Cbor = number | string | Buffer | Map<number | string, Cbor>;

/** What an authenticator writes of CBOR: whole numbers, texts, bytes and maps. */
function encodeCbor(value: Cbor): Buffer {
  const head = (major: number, count: number): Buffer =>
    count < 24
      ? Buffer.from([(major << 5) | count])
      : count < 256
        ? Buffer.from([(major << 5) | 24, count])
        : Buffer.from([(major << 5) | 25, count >> 8, count & 255]);
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  const entries = [...value].flatMap(([key, item]) => [encodeCbor(key), encodeCbor(item)]);
  return Buffer.concat([head(5, value.size), ...entries]);
}

const sha256 = (data: Buffer | string): Buffer => createHash('sha256').update(data).digest();
const PRESENT = 0x01;
const VERIFIED = 0x04;
const HAS_CREDENTIAL = 0x40;

/** How an answer differs from a right one. */
export interface Distortion {
  origin?: string;
  rpId?: string;
  isVerified?: boolean;
  counter?: number;
  /** What a browser says of the frames that the page stood in. */
  frame?: { crossOrigin?: boolean; topOrigin?: string };
  /** Of an attestation instead of none. */
  statement?: Map<number | string, Cbor>;
  format?: string;
}

/** A device with one passkey, as browsers speak for it. */
export interface SoftAuthenticator {
  id: string;
  create(options: { challenge: string }, distortion?: Distortion): object;
  get(options: { challenge: string }, distortion?: Distortion): object;
}

/** Makes a device for a site: real keys and signatures, without a browser. */
export function openAuthenticator(rpId: string, origin: string): SoftAuthenticator {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x, y } = publicKey.export({ format: 'jwk' }) as { x: string; y: string };
  const id = randomBytes(32);
  const cose = new Map<number | string, Cbor>([
    [1, 2],
    [3, -7],
    [-1, 1],
    [-2, Buffer.from(x, 'base64url')],
    [-3, Buffer.from(y, 'base64url')],
  ]);
  const data = (
    flags: number,
    { rpId: at = rpId, isVerified = true, counter = 0 }: Distortion,
    rest: Buffer,
  ): Buffer => {
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    return Buffer.concat([sha256(at), Buffer.from([flags | PRESENT | (isVerified ? VERIFIED : 0)]), count, rest]);
  };
  const client = (type: string, challenge: string, { origin: at = origin, frame }: Distortion): Buffer =>
    Buffer.from(JSON.stringify({ type, challenge, origin: at, crossOrigin: false, ...frame }));
  const answer = (response: object): object => ({
    id: id.toString('base64url'),
    rawId: id.toString('base64url'),
    type: 'public-key',
    response,
    clientExtensionResults: {},
  });
  return {
    id: id.toString('base64url'),
    create({ challenge }, distortion = {}) {
      const length = Buffer.from([0, id.length]);
      const authData = data(
        HAS_CREDENTIAL,
        distortion,
        Buffer.concat([Buffer.alloc(16), length, id, encodeCbor(cose)]),
      );
      const { format = 'none', statement = new Map<number | string, Cbor>() } = distortion;
      const attestation = new Map<number | string, Cbor>([
        ['fmt', format],
        ['attStmt', statement],
        ['authData', authData],
      ]);
      return answer({
        clientDataJSON: client('webauthn.create', challenge, distortion).toString('base64url'),
        attestationObject: encodeCbor(attestation).toString('base64url'),
        transports: ['internal'],
      });
    },
    get({ challenge }, distortion = {}) {
      const [authData, clientData] = [
        data(0, distortion, Buffer.alloc(0)),
        client('webauthn.get', challenge, distortion),
      ];
      const signature = sign('sha256', Buffer.concat([authData, sha256(clientData)]), privateKey);
      return answer({
        clientDataJSON: clientData.toString('base64url'),
        authenticatorData: authData.toString('base64url'),
        signature: signature.toString('base64url'),
      });
    },
  };
}
