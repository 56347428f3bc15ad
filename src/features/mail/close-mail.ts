import type { App } from '../../app.js';
import type { SendOutcome } from '../../platform/mail-provider/mail-provider.js';
import { advanceLog, type MailLog } from './mail-log.js';
import { listStatusEvents } from './mail-event.js';
import { refundSlot, settleSlots } from './sending/mail-slots.js';

type AcceptedMail = Extract<SendOutcome, { outcome: 'accepted' }>;

/**
 * Notes that the provider took a mail, under that id, and which recipients it refused or that it sends none. Its slot
 * stays taken.
 */
export async function acceptMail(app: App, log: MailLog, { id, partial, isKept }: AcceptedMail): Promise<void> {
  const providerEmailId = id;
  const sentAt = new Date(app.clock.now());
  const reason = partial ?? (isKept ? 'kept in the outbox, not sent' : null);
  await advanceLog(app, { _id: log._id }, 'sent', { providerEmailId, sentAt, reason });
  await closeMail(app, { ...log, status: 'sent', providerEmailId });
}

/**
 * Finishes a mail that is no longer queued: settles its slot or gives it back, and lets the provider's word from before
 * its id was known take effect. Idempotent.
 */
export async function closeMail(app: App, log: MailLog): Promise<void> {
  if (log.status === 'failed') return refundSlot(app, log.projectId, log._id);
  for (const { status, reason } of await listStatusEvents(app, log)) {
    await advanceLog(app, { _id: log._id }, status, { ...(reason !== null && { reason }) });
  }
  await settleSlots(app, log.projectId, [log._id]);
}
