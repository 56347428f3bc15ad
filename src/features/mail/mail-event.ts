import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { unlessDuplicate } from '../../platform/database/database.js';
import { storeOf } from '../../platform/database/store-of.js';
import type { MailLog, MailStatus } from './mail-log.js';

/** The mail provider's word about a mail; kept for a while, as it may come before the mail's id there is known here. */
export interface MailEvent {
  /** Whose account it came from, and the event's id there. */
  _id: string;
  /** The project whose own account sent it; null = the service's account. */
  projectId: ObjectId | null;
  providerEmailId: string;
  status: MailStatus;
  reason: string | null;
  seenAt: Date;
}

export const eventStore = storeOf<MailEvent>('mail_events');

/** Keeps an event; false when it was there already. */
export async function keepEvent(app: Pick<App, 'db'>, event: MailEvent): Promise<boolean> {
  return (await unlessDuplicate(eventStore(app).insertOne(event))) !== null;
}

/**
 * The events about a mail, from its project's own account and from the service's; none while the provider has not named
 * it.
 */
export async function listStatusEvents(
  app: Pick<App, 'db'>,
  { projectId, providerEmailId }: Pick<MailLog, 'projectId' | 'providerEmailId'>,
): Promise<MailEvent[]> {
  if (providerEmailId === null) return [];
  const events = eventStore(app).find({ providerEmailId, projectId: { $in: [projectId, null] } });
  return events.sort({ seenAt: 1, _id: 1 }).toArray();
}
