import type { Clock } from '../clock.js';
import { isDuplicateKey, type Database } from '../database.js';
import type { MailProvider, OutgoingMail } from './mail-provider.js';

export const MAIL_OUTBOX = 'mail_outbox';

/** A message kept instead of sent: what the default provider does, for development and for `bsvc mail outbox`. */
export interface OutboxMessage extends OutgoingMail {
  /** The idempotency key it was handed over with. */
  _id: string;
  createdAt: Date;
}

export function openOutbox(db: Database, clock: Clock): MailProvider {
  return {
    name: 'outbox',
    async send(mail, idempotencyKey) {
      try {
        await db
          .collection<OutboxMessage>(MAIL_OUTBOX)
          .insertOne({ _id: idempotencyKey, ...mail, createdAt: new Date(clock.now()) });
      } catch (error) {
        if (!isDuplicateKey(error)) throw error;
      }
      return { outcome: 'accepted', id: idempotencyKey };
    },
    findStatus: () => Promise.resolve({ lastEvent: 'delivered', raw: null }),
  };
}
