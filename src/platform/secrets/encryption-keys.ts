import { conflict } from '../../errors.js';
import type { Database, Store } from '../database/database.js';
import { keyIdOf, type SecretBox } from './secret-box.js';

/** A master key by its id: something in the store may be encrypted with it. */
interface EncryptionKey {
  _id: string;
  since: Date;
}

export const ENCRYPTION_KEYS = 'encryption_keys';

const keyStore = (db: Database): Store<EncryptionKey> => db.collection<EncryptionKey>(ENCRYPTION_KEYS);

/**
 * Ids of the master keys without which something in the store cannot be opened; none for a store in which nothing is
 * encrypted.
 */
export async function findEncryptionKeys(db: Database): Promise<string[]> {
  const noted = await keyStore(db).find({}).toArray();
  if (noted.length > 0) return noted.map(({ _id }) => _id);
  // Stores of older versions note nothing, but every project has an encrypted secret of its own and nothing is
  // encrypted without a project.
  const ids = new Set<string>();
  const projects = db.collection('projects').find({}, { projection: { 'tokenSecrets.encrypted': 1 } });
  for await (const { tokenSecrets } of projects) {
    for (const { encrypted } of (tokenSecrets ?? []) as { encrypted: string }[]) ids.add(keyIdOf(encrypted));
  }
  return [...ids];
}

/**
 * 409 MASTER_KEY_MISSING or MASTER_KEY_DAMAGED as the key's reader says, MASTER_KEY_FOREIGN when a key that is needed
 * is not among those given. Writes nothing.
 */
export async function requireEncryptionKeys({ db, secrets }: Keys): Promise<void> {
  const needed = await findEncryptionKeys(db);
  if (needed.length === 0) return;
  const given = secrets.keyIds();
  const absent = needed.filter((id) => !given.includes(id));
  if (absent.length === 0) return;
  throw conflict(
    'MASTER_KEY_FOREIGN',
    `What is stored was encrypted with the master key ${absent.join(' and ')}, and the one given is ${given.join(', ')}. Give the right one: the secret.key that belongs to this store, or BSVC_SECRET_KEY as it was; after a change of keys the old one follows the new one behind a comma until "bsvc secrets rotate" is done.`,
  );
}

/**
 * Notes the key that encrypts from now on, before anything is encrypted with it. Comes after requireEncryptionKeys: the
 * store is this key's from then on.
 */
export async function recordEncryptionKeys({ db, secrets }: Keys, nowMs: number): Promise<void> {
  const noted = (await keyStore(db).find({}).toArray()).map(({ _id }) => _id);
  const [newest] = secrets.keyIds();
  const wanted = noted.length > 0 ? [newest!] : [...new Set([newest!, ...(await findEncryptionKeys(db))])];
  for (const _id of wanted) {
    if (noted.includes(_id)) continue;
    await keyStore(db).updateOne({ _id }, { $setOnInsert: { since: new Date(nowMs) } }, { upsert: true });
  }
}

/** Forgets the older keys, after everything was encrypted again. */
export async function forgetOlderKeys({ db, secrets }: Keys): Promise<void> {
  await keyStore(db).deleteMany({ _id: { $ne: secrets.keyIds()[0]! } });
}

interface Keys {
  db: Database;
  secrets: SecretBox;
}
