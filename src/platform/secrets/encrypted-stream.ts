import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, scrypt } from 'node:crypto';
import { Transform, type TransformCallback } from 'node:stream';
import { promisify } from 'node:util';
import { invalid } from '../../errors.js';

/**
 * The secret that encrypts a file: a passphrase that a person chose, or a master key, which needs no slow derivation.
 */
export type EncryptionSecret = { kind: 'passphrase' | 'master-key'; text: string };

const FORMAT = 'bsvc-encrypted/1';
const FRAME_BYTES = 64 * 1024;
const TAG_BYTES = 16;
const SALT_BYTES = 16;
const MAX_HEAD_BYTES = 1024;
/** About 100 ms and 32 MiB for each guess at a passphrase. */
const SCRYPT = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 };

interface Head {
  format: typeof FORMAT;
  secret: EncryptionSecret['kind'];
  salt: string;
  /** Identifies one of several secrets: a hash under the derived key. */
  check: string;
}

/** True when a file that begins with these bytes is an encrypted one. */
export function isEncrypted(beginning: Buffer): boolean {
  return beginning.toString('latin1').startsWith(`{"format":"${FORMAT}"`);
}

/**
 * Encrypts a stream (AES-256-GCM under a key of its own): a line of JSON that names the kind of secret, then frames of
 * 64 KiB. A frame knows its number, whether it is the last, and the head, so that nothing can be changed, left out,
 * repeated or cut off unnoticed.
 */
export async function createEncryptStream(secret: EncryptionSecret): Promise<Transform> {
  const salt = randomBytes(SALT_BYTES);
  const key = await deriveKey(secret, salt);
  const head: Head = { format: FORMAT, secret: secret.kind, salt: salt.toString('base64url'), check: checkOf(key) };
  const line = Buffer.from(`${JSON.stringify(head)}\n`);
  const encrypt = (frame: Buffer, number: number, isLast: boolean): Buffer => {
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(number, isLast));
    cipher.setAAD(line);
    return Buffer.concat([cipher.update(frame), cipher.final(), cipher.getAuthTag()]);
  };
  const stream = new Frames(FRAME_BYTES, encrypt);
  stream.push(line);
  return stream;
}

/**
 * Opens what createEncryptStream encrypted. The stream fails with 400 BACKUP_DAMAGED, SECRET_NEEDED or SECRET_FOREIGN.
 */
export function createDecryptStream(
  findSecrets: (kind: EncryptionSecret['kind']) => readonly EncryptionSecret[],
): Transform {
  let beginning = Buffer.alloc(0);
  let frames: Frames | null = null;
  const takeHead = async (out: Transform): Promise<Buffer | null> => {
    const end = beginning.indexOf(0x0a);
    if (end < 0 && beginning.length > MAX_HEAD_BYTES) throw damaged();
    if (end < 0) return null;
    const line = beginning.subarray(0, end + 1);
    const head = readHead(line);
    const key = await findKey(head, findSecrets(head.secret));
    frames = new Frames(FRAME_BYTES + TAG_BYTES, (frame, number, isLast) => {
      if (frame.length < TAG_BYTES) throw damaged();
      const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(number, isLast), { authTagLength: TAG_BYTES });
      decipher.setAAD(line);
      decipher.setAuthTag(frame.subarray(-TAG_BYTES));
      try {
        return Buffer.concat([decipher.update(frame.subarray(0, -TAG_BYTES)), decipher.final()]);
      } catch {
        throw damaged();
      }
    });
    frames.on('data', (chunk: Buffer) => out.push(chunk));
    return beginning.subarray(end + 1);
  };
  const feed = (chunk: Buffer, done: TransformCallback): void =>
    frames!._transform(chunk, 'buffer' as BufferEncoding, done);
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (frames) {
        feed(chunk, done);
        return;
      }
      beginning = Buffer.concat([beginning, chunk]);
      takeHead(this).then((rest) => (rest ? feed(rest, done) : done()), done);
    },
    flush(done) {
      if (frames) frames._flush(done);
      else done(damaged());
    },
  });
}

/**
 * Cuts a stream into frames of a fixed size and turns each into another; it holds one back, so that the last is known
 * as such.
 */
class Frames extends Transform {
  #held: Buffer[] = [];
  #heldBytes = 0;
  #number = 0;

  constructor(
    private readonly size: number,
    private readonly turn: (frame: Buffer, number: number, isLast: boolean) => Buffer,
  ) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes <= this.size) return done();
    try {
      let rest = Buffer.concat(this.#held);
      for (; rest.length > this.size; rest = rest.subarray(this.size)) {
        this.push(this.turn(rest.subarray(0, this.size), this.#number++, false));
      }
      this.#held = [rest];
      this.#heldBytes = rest.length;
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  override _flush(done: TransformCallback): void {
    try {
      this.push(this.turn(Buffer.concat(this.#held), this.#number, true));
      done();
    } catch (error) {
      done(error as Error);
    }
  }
}

function nonceOf(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeBigUInt64BE(BigInt(number), 3);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

async function deriveKey({ kind, text }: EncryptionSecret, salt: Buffer): Promise<Buffer> {
  if (kind === 'master-key') return Buffer.from(hkdfSync('sha256', text, salt, 'bsvc backup', 32));
  return (promisify(scrypt) as (...args: unknown[]) => Promise<Buffer>)(text, salt, 32, SCRYPT);
}

async function findKey({ secret: kind, salt, check }: Head, secrets: readonly EncryptionSecret[]): Promise<Buffer> {
  if (secrets.length === 0) throw needsSecret(kind);
  for (const secret of secrets) {
    const key = await deriveKey(secret, Buffer.from(salt, 'base64url'));
    if (checkOf(key) === check) return key;
  }
  throw foreignSecret(kind);
}

function checkOf(key: Buffer): string {
  return createHmac('sha256', key).update('check').digest('base64url').slice(0, 16);
}

function readHead(line: Buffer): Head {
  try {
    const head = JSON.parse(line.toString('utf8')) as Head;
    if (head.format === FORMAT && typeof head.salt === 'string') return head;
  } catch {
    // Told below.
  }
  throw damaged();
}

const damaged = (): Error =>
  invalid('BACKUP_DAMAGED', 'The backup is damaged or cut short: take another. Nothing was changed.');

function needsSecret(kind: EncryptionSecret['kind']): Error {
  return invalid(
    'SECRET_NEEDED',
    kind === 'passphrase'
      ? 'The backup is encrypted with a passphrase: set BSVC_BACKUP_PASSPHRASE'
      : 'The backup is encrypted with the master key: put its secret.key into the data directory, or set BSVC_SECRET_KEY',
  );
}

function foreignSecret(kind: EncryptionSecret['kind']): Error {
  const name = kind === 'passphrase' ? 'BSVC_BACKUP_PASSPHRASE' : 'the master key';
  return invalid('SECRET_FOREIGN', `The backup was encrypted with another secret: ${name} does not open it`);
}
