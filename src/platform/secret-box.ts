import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Seals short texts with the master keys (AES-256-GCM) and derives keys from them for other purposes. */
export interface SecretBox {
  /** Sealed text `v1.<key id>.<base64url>`; it opens only with the same `context`, so that it cannot be copied to another project or field. */
  seal(text: string, context: string): string;
  /** The sealed text; throws when the key is gone, the context is another or a bit was changed. */
  open(sealed: string, context: string): string;
  /** True when `sealed` was made with an older key than the newest. */
  isOld(sealed: string): boolean;
  /** Keyed SHA-256 of `text` under the newest key as base64url; `purpose` keeps uses apart. */
  mac(purpose: string, text: string): string;
  /** `mac` under every key, newest first: for checking what was made before a rotation. */
  macs(purpose: string, text: string): string[];
}

interface BoxKey {
  id: string;
  master: Buffer;
  sealing: Buffer;
}

/** Opens a box from the master keys as configured: several texts, comma-separated, newest first. */
export function openSecretBox(masterKeys: string): SecretBox {
  const keys = masterKeys
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)
    .map(readKey);
  const newest = keys[0];
  if (!newest) throw new Error('at least one master key is needed');
  const derived = new Map<string, Buffer>();

  const deriveKey = (key: BoxKey, purpose: string): Buffer => {
    const name = `${key.id}:${purpose}`;
    let found = derived.get(name);
    if (!found) {
      found = Buffer.from(hkdfSync('sha256', key.master, 'bsvc', `mac:${purpose}`, 32));
      derived.set(name, found);
    }
    return found;
  };
  const mac = (key: BoxKey, purpose: string, text: string): string =>
    createHmac('sha256', deriveKey(key, purpose)).update(text).digest('base64url');

  return {
    seal(text, context) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', newest.sealing, iv);
      cipher.setAAD(Buffer.from(context));
      const body = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      return `v1.${newest.id}.${body.toString('base64url')}`;
    },
    open(sealed, context) {
      const [version, keyId, body] = sealed.split('.');
      const key = keys.find((candidate) => candidate.id === keyId);
      if (version !== 'v1' || !body) throw new Error('not a sealed secret');
      if (!key) throw new Error(`the master key ${keyId} that sealed this secret is not among the configured ones`);
      const bytes = Buffer.from(body, 'base64url');
      const decipher = createDecipheriv('aes-256-gcm', key.sealing, bytes.subarray(0, IV_BYTES));
      decipher.setAAD(Buffer.from(context));
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      return decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    },
    isOld: (sealed) => sealed.split('.')[1] !== newest.id,
    mac: (purpose, text) => mac(newest, purpose, text),
    macs: (purpose, text) => keys.map((key) => mac(key, purpose, text)),
  };
}

function readKey(text: string): BoxKey {
  const master = createHash('sha256').update(text).digest();
  return {
    id: createHash('sha256').update('id').update(master).digest('hex').slice(0, 8),
    master,
    sealing: Buffer.from(hkdfSync('sha256', master, 'bsvc', 'seal', 32)),
  };
}
