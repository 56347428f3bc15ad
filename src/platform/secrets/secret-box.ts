import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts short texts with the master keys (AES-256-GCM) and derives keys from them for other purposes. */
export interface SecretBox {
  /**
   * Encrypted text `v1.<key id>.<base64url>`; it can be decrypted only with the same `context`, so that it cannot be
   * copied to another project or field.
   */
  encrypt(text: string, context: string): string;
  /** The plain text. Throws if the key is missing, the context differs or the text was changed. */
  decrypt(encrypted: string, context: string): string;
  /** Ids of the keys, newest first; encrypted texts name the id of theirs. */
  keyIds(): string[];
  /** Looks for new master keys now. */
  reload(): void;
  /** True when `encrypted` was made with an older key than the newest. */
  isOld(encrypted: string): boolean;
  /** Keyed SHA-256 of `text` under the newest key as base64url; `purpose` keeps uses apart. */
  mac(purpose: string, text: string): string;
  /** `mac` under every key, newest first: for checking what was made before a rotation. */
  macs(purpose: string, text: string): string[];
}

interface BoxKey {
  id: string;
  master: Buffer;
  encryption: Buffer;
}

/** The longest time for which newly configured keys go unnoticed. */
const RELOAD_MS = 1_000;

/**
 * Opens a box on the master keys: texts, comma-separated, newest first. A function is asked again about once a second,
 * so that a rotation reaches running processes, and at once when a secret was encrypted with a key that is not known
 * yet. It is asked when the box is first used, not before.
 */
export function openSecretBox(masterKeys: string | (() => string)): SecretBox {
  const readKeys = typeof masterKeys === 'string' ? () => masterKeys : masterKeys;
  let source = '';
  let keys: BoxKey[] = [];
  let checkedMs = 0;
  const derived = new Map<string, Buffer>();

  const reload = (): void => {
    checkedMs = performance.now();
    const text = readKeys();
    if (text === source) return;
    const read = text
      .split(',')
      .map((part) => part.trim())
      .filter(Boolean)
      .map(readKey);
    if (read.length === 0) throw new Error('at least one master key is needed');
    source = text;
    keys = read;
  };
  const current = (): BoxKey[] => {
    if (keys.length === 0 || performance.now() - checkedMs > RELOAD_MS) reload();
    return keys;
  };
  const requireKey = (id: string | undefined): BoxKey => {
    let key = current().find((candidate) => candidate.id === id);
    if (!key) {
      reload();
      key = keys.find((candidate) => candidate.id === id);
    }
    if (!key) throw new Error(`the master key ${id} that encrypted this secret is not among the configured ones`);
    return key;
  };
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

  if (typeof masterKeys === 'string') reload();
  return {
    keyIds: () => current().map(({ id }) => id),
    reload,
    encrypt(text, context) {
      const newest = current()[0]!;
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', newest.encryption, iv);
      cipher.setAAD(Buffer.from(context));
      const body = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      return `v1.${newest.id}.${body.toString('base64url')}`;
    },
    decrypt(encrypted, context) {
      const [version, keyId, body] = encrypted.split('.');
      if (version !== 'v1' || !body) throw new Error('not an encrypted secret');
      const key = requireKey(keyId);
      const bytes = Buffer.from(body, 'base64url');
      const decipher = createDecipheriv('aes-256-gcm', key.encryption, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(context));
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      return decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    },
    isOld: (encrypted) => encrypted.split('.')[1] !== current()[0]!.id,
    mac: (purpose, text) => mac(current()[0]!, purpose, text),
    macs: (purpose, text) => current().map((key) => mac(key, purpose, text)),
  };
}

/** The id of the key that encrypted a text. */
export function keyIdOf(encrypted: string): string {
  return encrypted.split('.')[1] ?? '';
}

function readKey(text: string): BoxKey {
  const master = createHash('sha256').update(text).digest();
  return {
    id: createHash('sha256').update('id').update(master).digest('hex').slice(0, 8),
    master,
    encryption: Buffer.from(hkdfSync('sha256', master, 'bsvc', 'encrypt', 32)),
  };
}
