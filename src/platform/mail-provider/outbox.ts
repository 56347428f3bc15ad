import type { Clock } from '../time/clock.js';
import { type Database, type Store, unlessDuplicate } from '../database/database.js';
import type { EncryptedPlace } from '../secrets/reencrypt.js';
import type { SecretBox } from '../secrets/secret-box.js';
import type { MailProvider, OutgoingMail } from './mail-provider.js';

export const MAIL_OUTBOX = 'mail_outbox';

/**
 * A message kept instead of sent: what the default provider does, for development and for `bsvc mail outbox`.
 * Encrypted, as mails carry codes that open accounts.
 */
interface StoredMessage {
  /** The idempotency key it was handed over with. */
  _id: string;
  to: string[];
  encrypted: string;
  createdAt: Date;
}

export interface OutboxMessage extends OutgoingMail {
  id: string;
  createdAt: Date;
}

const outboxStore = (db: Database): Store<StoredMessage> => db.collection<StoredMessage>(MAIL_OUTBOX);
const encryptionContext = (id: string): string => `mail-outbox:${id}`;

export function openOutbox(db: Database, clock: Clock, box: Pick<SecretBox, 'encrypt'>): MailProvider {
  return {
    name: 'outbox',
    async send(mail, idempotencyKey) {
      const encrypted = box.encrypt(JSON.stringify(mail), encryptionContext(idempotencyKey));
      const kept = { _id: idempotencyKey, to: mail.to, encrypted, createdAt: new Date(clock.now()) };
      await unlessDuplicate(outboxStore(db).insertOne(kept));
      return { outcome: 'accepted', id: idempotencyKey, isKept: true };
    },
    findStatus: () => Promise.resolve({ lastEvent: 'delivered', raw: null }),
  };
}

/** The kept messages, newest first; only those to one address when `to` is given. */
export async function listOutbox(
  app: { db: Database; secrets: Pick<SecretBox, 'decrypt'> },
  options: { to?: string; limit?: number } = {},
): Promise<OutboxMessage[]> {
  const stored = await outboxStore(app.db)
    .find(options.to === undefined ? {} : { to: options.to })
    .sort({ createdAt: -1, _id: -1 })
    .limit(options.limit ?? 50)
    .toArray();
  return stored.map(({ _id, encrypted, createdAt }) => ({
    id: _id,
    createdAt,
    ...(JSON.parse(app.secrets.decrypt(encrypted, encryptionContext(_id))) as OutgoingMail),
  }));
}

/** The message that was handed over with a key, as the outbox keeps it; null when it keeps none. */
export async function findInOutbox(
  app: { db: Database; secrets: Pick<SecretBox, 'decrypt'> },
  key: string,
): Promise<OutgoingMail | null> {
  const kept = await outboxStore(app.db).findOne({ _id: key });
  return kept && (JSON.parse(app.secrets.decrypt(kept.encrypted, encryptionContext(key))) as OutgoingMail);
}

/** Removes kept messages by the keys they were handed over with. */
export async function removeFromOutbox(app: { db: Database }, keys: readonly string[]): Promise<void> {
  await outboxStore(app.db).deleteMany({ _id: { $in: [...keys] } });
}

/** Removes some of the messages that were handed over until a moment; how many. */
export async function forgetOutbox(db: Database, until: Date, most: number): Promise<number> {
  const found = await outboxStore(db)
    .find({ createdAt: { $lte: until } })
    .project<Pick<StoredMessage, '_id'>>({ _id: 1 })
    .limit(most)
    .toArray();
  const ids = found.map(({ _id }) => _id);
  if (ids.length > 0) await db.useReserve(() => outboxStore(db).deleteMany({ _id: { $in: ids } }));
  return ids.length;
}

export const ENCRYPTED_OUTBOX: EncryptedPlace = {
  collection: MAIL_OUTBOX,
  fields: (record) => {
    const { _id, encrypted } = record as StoredMessage;
    return [{ path: 'encrypted', encrypted, context: encryptionContext(_id) }];
  },
};
