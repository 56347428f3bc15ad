import type { ObjectId } from 'bson';
import { invalid } from '../../errors.js';
import { storeOf } from '../../platform/database/database.js';

/** The actions on a document that send events. `delete` is moving it to the trash, and removing it permanently. */
export const ACTIONS = ['insert', 'update', 'delete', 'recover'] as const;
export type Action = (typeof ACTIONS)[number];

/** A change of a document of which deliveries are to be made. */
export interface WaitingEvent {
  id: string;
  action: Action;
  /** Place among the events of its document: the time of its version, of which no two have the same. */
  seq: number;
  /** Of its payload. */
  bytes: number;
}

/** The events of one document that wait, in their order: added at the end and taken from the front. */
export interface WaitingEvents {
  _id: string;
  projectId: ObjectId;
  collection: string;
  documentId: string;
  events: WaitingEvent[];
}

export const WEBHOOK_EVENTS = 'webhook_events';
export const waitingStore = storeOf<WaitingEvents>(WEBHOOK_EVENTS);

/** The filter of records whose ids begin with that of their project and a dot. */
export function ofProject(projectId: ObjectId): { _id: { $gte: string; $lt: string } } {
  const prefix = projectId.toHexString();
  return { _id: { $gte: `${prefix}.`, $lt: `${prefix}/` } };
}

export const TEST_EVENT = 'test.ping';

export const MAX_EVENTS = 100;
const EVENT_FORM = new RegExp(`^(\\*|[A-Za-z][A-Za-z0-9_-]{0,63})\\.(${ACTIONS.join('|')}|\\*)$`);

/**
 * Checks the events of a subscription and drops repetitions; 400 INVALID_EVENTS with the form to use. A collection need
 * not exist yet.
 */
export function parseEvents(events: readonly unknown[]): string[] {
  if (events.length === 0 || events.length > MAX_EVENTS) {
    throw invalid('INVALID_EVENTS', `Subscribe to 1 to ${MAX_EVENTS} events`);
  }
  for (const event of events) {
    if (typeof event === 'string' && (event === '*' || EVENT_FORM.test(event))) continue;
    throw invalid(
      'INVALID_EVENTS',
      `${JSON.stringify(event)?.slice(0, 100)} is not an event: use <collection>.<${ACTIONS.join('|')}>, <collection>.*, *.<action> or *`,
    );
  }
  return [...new Set(events as string[])];
}

/** The collections that a subscription names. */
export function namedCollections(events: readonly string[]): string[] {
  return [...new Set(events.map((event) => event.split('.')[0]!))].filter((name) => name !== '*');
}

/** True if a subscription covers the event. */
export function coversEvent(events: readonly string[], collection: string, action: Action): boolean {
  return events.some(
    (event) =>
      event === '*' ||
      event === `${collection}.${action}` ||
      event === `${collection}.*` ||
      event === `*.${action}` ||
      event === '*.*',
  );
}
