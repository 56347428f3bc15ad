import { invalid } from '../../errors.js';

/** The actions on a document that send events. `delete` is moving it to the trash, and removing it permanently. */
export const ACTIONS = ['insert', 'update', 'delete', 'recover'] as const;
export type Action = (typeof ACTIONS)[number];

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
