import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { WriteTurn, WrittenStep } from '../../../platform/database/database.js';
import { versionTime } from '../../../platform/time/clock.js';
import { keepsChanges } from '../../changes/change-log.js';
import { CHANGE_LOG, waitingEntry } from '../../changes/stored-log.js';
import type { Collection } from '../../collections/collection.js';
import { buildPayload, generateEventId } from '../deliveries/build-delivery.js';
import { buildPayloadRecord, payloadId, WEBHOOK_PAYLOADS } from '../deliveries/payload.js';
import { coversEvent, WEBHOOK_EVENTS, type Action, type WaitingEvent, type WaitingEvents } from '../webhook-event.js';
import { listProjectWebhooks, peekProjectWebhooks, type Webhook } from '../webhook-store.js';
import { relayEvents } from './relay-events.js';

/** For whom a write stores the event of its change. */
export interface Listeners {
  webhooks: boolean;
  /** Of a MongoDB, whose changes the application logs itself. */
  log: boolean;
}

/**
 * Who listens to the changes of a collection; null for nobody. A webhook that another process registered counts within
 * half a second. A promise only when it takes time.
 */
export function findListeners(
  app: App,
  collection: Pick<Collection, 'projectId' | 'name' | 'changes'>,
  action: Action,
): Listeners | null | Promise<Listeners | null> {
  const log = !app.db.changeLogs && keepsChanges(app, collection);
  const { projectId, name } = collection;
  const among = (all: readonly Webhook[]): Listeners | null => {
    const webhooks = all.some(({ disabled, events }) => !disabled && coversEvent(events, name, action));
    return webhooks || log ? { webhooks, log } : null;
  };
  const known = peekProjectWebhooks(app, projectId);
  return known ? among(known) : listProjectWebhooks(app, projectId).then(among);
}

/** A write of one document. */
interface HeardWrite {
  collection: Collection;
  id: ObjectId;
  action: Action;
  listeners: Listeners | null;
}

/**
 * The turns that store the events of writes, after them in the same transaction; `changes` has what these came to, by
 * the same positions. What did not change anything has no event.
 */
export function eventTurns(app: App, writes: readonly HeardWrite[], changes: readonly WrittenStep[]): WriteTurn[] {
  const payloads: WriteTurn[] = [];
  const waiting: WriteTurn[] = [];
  const entries: WriteTurn[] = [];
  for (const [index, { collection, id, action, listeners }] of writes.entries()) {
    if (!listeners) continue;
    const eventId = generateEventId();
    const at = new Date(app.clock.now());
    const changed = (): WrittenStep | null => {
      const change = changes[index]!;
      return change.after === change.before ? null : change;
    };
    if (listeners.webhooks) {
      const { projectId, name } = collection;
      const documentId = id.toHexString();
      const event = { id: eventId, action, seq: 0, bytes: 0 };
      const about = { ...event, at, actor: app.actor, projectId, collection: name, documentId };
      payloads.push({
        ...{ collection: WEBHOOK_PAYLOADS, id: payloadId({ projectId, eventId }), isNew: true },
        run() {
          const change = changed();
          if (!change) return null;
          const document = change.after ?? removed(change.before!, at);
          const body = buildPayload(about, document, change.before);
          event.seq = (document.updatedAt as Date).getTime();
          event.bytes = Buffer.byteLength(body);
          return { ...buildPayloadRecord(app, payloadId({ projectId, eventId }), body, at.getTime()) };
        },
      });
      const _id = `${projectId.toHexString()}.${name}.${documentId}`;
      waiting.push({
        ...{ collection: WEBHOOK_EVENTS, id: _id },
        run(stored) {
          const events = (stored?.events ?? []) as WaitingEvent[];
          return changed()
            ? { _id, projectId, collection: name, documentId, events: [...events, { ...event }] }
            : stored;
        },
      });
    }
    if (listeners.log) {
      entries.push({
        ...{ collection: CHANGE_LOG, id: eventId, isNew: true },
        run() {
          const change = changed();
          return change && { _id: eventId, ...waitingEntry(collection, at, change) };
        },
      });
    }
  }
  // New ones that follow one another are stored together.
  return [...payloads, ...waiting, ...entries];
}

/** The `data` of a permanently removed document. */
function removed(before: Record<string, unknown>, at: Date): Record<string, unknown> {
  return { ...before, isDeleted: true, deletedAt: at, updatedAt: versionTime(before, at.getTime()) };
}

/** Has the deliveries of stored events made after the response. Best effort: the sweep picks up what is lost. */
export function relayLater(app: App, stored: readonly WrittenStep[]): void {
  for (const { after } of stored) {
    if (!after?.events) continue;
    // The driver's documents have any field: these are what eventTurns has stored.
    app.backgroundTasks.add('webhooks.relay', after as unknown as WaitingEvents, (items) => relayEvents(app, items));
  }
}
