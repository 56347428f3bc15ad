import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import {
  createDecryptStream,
  createEncryptStream,
  isEncrypted,
  type EncryptionSecret,
} from '../../src/platform/secrets/encrypted-stream.js';

const KEY: EncryptionSecret = { kind: 'master-key', text: 'a master key of some length' };
const PASSPHRASE: EncryptionSecret = { kind: 'passphrase', text: 'correct horse battery staple' };
const FRAME_BYTES = 64 * 1024;

const encrypt = async (bytes: Buffer, secret = KEY): Promise<Buffer> =>
  Buffer.concat(
    await Readable.from(slices(bytes))
      .pipe(await createEncryptStream(secret))
      .toArray(),
  );

async function open(encrypted: Buffer, secrets: EncryptionSecret[] = [KEY]): Promise<Buffer> {
  const opening = createDecryptStream((kind) => secrets.filter((secret) => secret.kind === kind));
  return Buffer.concat((await Readable.from(slices(encrypted)).pipe(opening).toArray()) as Buffer[]);
}

function slices(bytes: Buffer): Buffer[] {
  const size = 10_007;
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

describe('an encrypted stream', () => {
  it.each([0, 1, FRAME_BYTES - 1, FRAME_BYTES, FRAME_BYTES + 1, 3 * FRAME_BYTES])('carries %i bytes', async (size) => {
    const bytes = randomBytes(size);
    const encrypted = await encrypt(bytes);
    expect(isEncrypted(encrypted)).toBe(true);
    expect((await open(encrypted)).equals(bytes)).toBe(true);
  });

  it('opens with a passphrase, and with an older master key beside the newest', async () => {
    const bytes = randomBytes(1000);
    expect((await open(await encrypt(bytes, PASSPHRASE), [PASSPHRASE])).equals(bytes)).toBe(true);
    expect((await open(await encrypt(bytes), [{ kind: 'master-key', text: 'newer' }, KEY])).equals(bytes)).toBe(true);
  });

  it('shows nothing of its content', async () => {
    expect((await encrypt(Buffer.alloc(5000, 'secret'))).includes('secretsecret')).toBe(false);
  });

  it('says which secret is missing or another', async () => {
    const encrypted = await encrypt(randomBytes(10), PASSPHRASE);
    await expect(open(encrypted, [KEY])).rejects.toMatchObject({ code: 'SECRET_NEEDED' });
    await expect(open(encrypted, [{ ...PASSPHRASE, text: 'wrong' }])).rejects.toMatchObject({ code: 'SECRET_FOREIGN' });
  });

  it('refuses a changed byte at any place, and every cut', async () => {
    const bytes = randomBytes(2 * FRAME_BYTES + 100);
    const encrypted = await encrypt(bytes);
    const head = encrypted.indexOf('\n') + 1;
    const places = Array.from({ length: 40 }, (_, n) => Math.floor((n * (encrypted.length - 1)) / 39));
    for (const place of places) {
      const changed = Buffer.from(encrypted);
      changed[place]! ^= 1;
      await expect(open(changed), `byte ${place}`).rejects.toMatchObject({ kind: 'invalid' });
    }
    for (const end of [0, 10, head, head + 5, head + FRAME_BYTES + 16, encrypted.length - 1])
      await expect(open(encrypted.subarray(0, end)), `cut at ${end}`).rejects.toMatchObject({ kind: 'invalid' });
  });

  it('refuses frames that were exchanged or left out', async () => {
    const encrypted = await encrypt(randomBytes(3 * FRAME_BYTES));
    const head = encrypted.indexOf('\n') + 1;
    const frame = (n: number) => encrypted.subarray(head + n * (FRAME_BYTES + 16), head + (n + 1) * (FRAME_BYTES + 16));
    const top = encrypted.subarray(0, head);
    for (const frames of [
      [1, 0, 2],
      [0, 2],
      [0, 1],
      [0, 0, 1, 2],
    ])
      await expect(open(Buffer.concat([top, ...frames.map(frame)]))).rejects.toMatchObject({ code: 'BACKUP_DAMAGED' });
  });
});
