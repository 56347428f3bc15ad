import { createCipheriv, createHash, scrypt, timingSafeEqual } from 'node:crypto';

/** The password hash parameters of a Firebase project: the same for all of its users. */
export interface FirebaseScryptParameters {
  signerKey: Buffer;
  saltSeparator: Buffer;
  /** scrypt's r. */
  rounds: number;
  /** scrypt's N, as a power of two. */
  memCost: number;
}

const PREFIX = '$firebase-scrypt$';
const STORED = /^\$firebase-scrypt\$n=(\d{1,2}),r=(\d{1,2}),l=(\d{1,3})\$([A-Za-z0-9+/=]*)\$([A-Za-z0-9+/=]{44})$/;
const KEY_BYTES = 32;
const MAX_SIGNER_KEY_BYTES = 256;
/** scrypt takes 128 * N * r bytes; a sign-in may not take more. */
const MAX_MEMORY = 64 * 1024 * 1024;

const memoryOf = (memCost: number, rounds: number): number => 128 * 2 ** memCost * rounds;

export const isFirebaseScrypt = (hash: string): boolean => hash.startsWith(PREFIX);

/** The cost of bcrypt that takes about as long: 16 MiB, Firebase's default, is cost 10. */
export function bcryptCostOf(hash: string): number {
  const [, memCost, rounds] = STORED.exec(hash) ?? [];
  return Math.round(Math.log2(memoryOf(Number(memCost), Number(rounds)) / 2 ** 14));
}

/**
 * The stored form of a Firebase password hash. Firebase encrypts the project's signer key under a key made of the
 * password; the key stream of that is kept as SHA-256, so that the signer key need not be known afterwards and is
 * stored nowhere. Throws for parameters that no sign-in may cost.
 */
export function storeFirebaseHash(
  { passwordHash, salt }: { passwordHash: Buffer; salt: Buffer },
  { signerKey, saltSeparator, rounds, memCost }: FirebaseScryptParameters,
): string {
  const isWithin = memCost >= 1 && memCost <= 20 && rounds >= 1 && memoryOf(memCost, rounds) <= MAX_MEMORY;
  if (!isWithin) throw new Error(`mem_cost ${memCost} and rounds ${rounds} take more than 64 MiB a sign-in`);
  if (signerKey.length === 0 || signerKey.length > MAX_SIGNER_KEY_BYTES || signerKey.length !== passwordHash.length) {
    throw new Error(`a hash of ${passwordHash.length} bytes does not belong to a signer key of ${signerKey.length}`);
  }
  const stream = Buffer.from(passwordHash.map((byte, at) => byte ^ signerKey[at]!));
  const wholeSalt = Buffer.concat([salt, saltSeparator]).toString('base64');
  return `${PREFIX}n=${memCost},r=${rounds},l=${stream.length}$${wholeSalt}$${digest(stream).toString('base64')}`;
}

/** True if the password is the one of a hash that `storeFirebaseHash` made. */
export async function matchesFirebaseHash(password: string, hash: string): Promise<boolean> {
  const [, memCost, rounds, length, salt, kept] = STORED.exec(hash) ?? [];
  if (memCost === undefined) return false;
  const cost = { N: 2 ** Number(memCost), r: Number(rounds), p: 1, maxmem: 2 * MAX_MEMORY };
  const key = await new Promise<Buffer>((resolve, reject) =>
    scrypt(password, Buffer.from(salt!, 'base64'), KEY_BYTES, cost, (error, made) =>
      error ? reject(error) : resolve(made),
    ),
  );
  const stream = createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(Number(length)));
  return timingSafeEqual(digest(stream), Buffer.from(kept!, 'base64'));
}

const digest = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest();
