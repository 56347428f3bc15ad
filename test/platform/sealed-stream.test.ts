import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import {
  createOpening,
  createSealing,
  isSealed,
  type SealingSecret,
} from '../../src/platform/secrets/sealed-stream.js';

const KEY: SealingSecret = { kind: 'master-key', text: 'a master key of some length' };
const PASSPHRASE: SealingSecret = { kind: 'passphrase', text: 'correct horse battery staple' };
const FRAME_BYTES = 64 * 1024;

const seal = async (bytes: Buffer, secret = KEY): Promise<Buffer> =>
  Buffer.concat(
    await Readable.from(slices(bytes))
      .pipe(await createSealing(secret))
      .toArray(),
  );

async function open(sealed: Buffer, secrets: SealingSecret[] = [KEY]): Promise<Buffer> {
  const opening = createOpening((kind) => secrets.filter((secret) => secret.kind === kind));
  return Buffer.concat((await Readable.from(slices(sealed)).pipe(opening).toArray()) as Buffer[]);
}

function slices(bytes: Buffer): Buffer[] {
  const size = 10_007;
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

describe('a sealed stream', () => {
  it.each([0, 1, FRAME_BYTES - 1, FRAME_BYTES, FRAME_BYTES + 1, 3 * FRAME_BYTES])('carries %i bytes', async (size) => {
    const bytes = randomBytes(size);
    const sealed = await seal(bytes);
    expect(isSealed(sealed)).toBe(true);
    expect((await open(sealed)).equals(bytes)).toBe(true);
  });

  it('opens with a passphrase, and with an older master key beside the newest', async () => {
    const bytes = randomBytes(1000);
    expect((await open(await seal(bytes, PASSPHRASE), [PASSPHRASE])).equals(bytes)).toBe(true);
    expect((await open(await seal(bytes), [{ kind: 'master-key', text: 'newer' }, KEY])).equals(bytes)).toBe(true);
  });

  it('shows nothing of its content', async () => {
    expect((await seal(Buffer.alloc(5000, 'secret'))).includes('secretsecret')).toBe(false);
  });

  it('says which secret is missing or another', async () => {
    const sealed = await seal(randomBytes(10), PASSPHRASE);
    await expect(open(sealed, [KEY])).rejects.toMatchObject({ code: 'SECRET_NEEDED' });
    await expect(open(sealed, [{ ...PASSPHRASE, text: 'wrong' }])).rejects.toMatchObject({ code: 'SECRET_FOREIGN' });
  });

  it('refuses a changed byte at any place, and every cut', async () => {
    const bytes = randomBytes(2 * FRAME_BYTES + 100);
    const sealed = await seal(bytes);
    const head = sealed.indexOf('\n') + 1;
    const places = Array.from({ length: 40 }, (_, n) => Math.floor((n * (sealed.length - 1)) / 39));
    for (const place of places) {
      const changed = Buffer.from(sealed);
      changed[place]! ^= 1;
      await expect(open(changed), `byte ${place}`).rejects.toMatchObject({ kind: 'invalid' });
    }
    for (const end of [0, 10, head, head + 5, head + FRAME_BYTES + 16, sealed.length - 1])
      await expect(open(sealed.subarray(0, end)), `cut at ${end}`).rejects.toMatchObject({ kind: 'invalid' });
  });

  it('refuses frames that were exchanged or left out', async () => {
    const sealed = await seal(randomBytes(3 * FRAME_BYTES));
    const head = sealed.indexOf('\n') + 1;
    const frame = (n: number) => sealed.subarray(head + n * (FRAME_BYTES + 16), head + (n + 1) * (FRAME_BYTES + 16));
    const top = sealed.subarray(0, head);
    for (const frames of [
      [1, 0, 2],
      [0, 2],
      [0, 1],
      [0, 0, 1, 2],
    ])
      await expect(open(Buffer.concat([top, ...frames.map(frame)]))).rejects.toMatchObject({ code: 'BACKUP_DAMAGED' });
  });
});
