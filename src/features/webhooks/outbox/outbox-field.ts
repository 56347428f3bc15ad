import type { Actor } from '../../../platform/actor.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Action } from '../webhook-event.js';

/** An event as it waits inside its document, stored by the very write it reports. */
export interface OutboxEntry {
  id: string;
  action: Action;
  at: Date;
  /** Who asked for the change; absent = the service itself. */
  actor?: Actor;
  /** What readingFields of the document held before the change, each there; absent = unknown, or nothing was there. */
  held?: Record<string, unknown>;
}

/** The events in the hidden field of a document. */
export interface Outbox {
  /** The number of events the document has had: the last entry has this number. */
  seq: number;
  /** Since when something waits; absent = nothing does. Indexed, so that a sweep finds it. */
  at?: Date;
  outbox?: OutboxEntry[];
}

export const OUTBOX_SINCE = `${HIDDEN_FIELD}.at` as const;
export const OUTBOX_SEQ = `${HIDDEN_FIELD}.seq` as const;
export const OUTBOX_ENTRIES = `${HIDDEN_FIELD}.outbox` as const;

/** The outbox by the paths that updates name. */
export interface OutboxPaths {
  [OUTBOX_SINCE]: Date;
  [OUTBOX_SEQ]: number;
  [OUTBOX_ENTRIES]: OutboxEntry[];
}

/** The waiting events of a document as read; null when there are none. */
export function findOutbox(document: Record<string, unknown>): Required<Outbox> | null {
  const field = document[HIDDEN_FIELD] as Outbox | undefined;
  return field?.at && field.outbox ? (field as Required<Outbox>) : null;
}

/** The document as it is stored for the first time, with its event; unchanged without one. */
export function withOutbox<T extends object>(document: T, entry: OutboxEntry | null): T {
  if (!entry) return document;
  const outbox: Outbox = { seq: 1, at: entry.at, outbox: [entry] };
  return { ...document, [HIDDEN_FIELD]: { ...(document as Record<string, object>)[HIDDEN_FIELD], ...outbox } };
}

/** A stored document after a change, with the event of it; the field keeps what else is in it. */
export function withEvent<T extends object>(document: T, entry: OutboxEntry): T {
  const notes = (document as Record<string, Partial<Outbox> | undefined>)[HIDDEN_FIELD];
  const at = notes?.at && notes.at < entry.at ? notes.at : entry.at;
  const outbox: Outbox = { seq: (notes?.seq ?? 0) + 1, at, outbox: [...(notes?.outbox ?? []), entry] };
  return { ...document, [HIDDEN_FIELD]: { ...notes, ...outbox } };
}
