import type { Action } from '../../webhooks/webhook-event.js';

/** Paths of one document that a write changes. */
export interface RecordChange {
  action: Action;
  set: Record<string, unknown>;
  unset?: readonly string[];
  /** The database's update operators, each with its paths. */
  operators?: Record<string, Record<string, unknown>>;
  /** The service's own paths alone: stored in a full project too, and in a document of the largest size. */
  isOwn?: boolean;
}

/** The database's update of a change: its operators, each with paths. */
export type DocumentUpdate = Record<string, Record<string, unknown>>;

export function updateOf({ set, unset = [], operators = {} }: Omit<RecordChange, 'action'>): DocumentUpdate {
  return {
    ...operators,
    $set: set,
    ...(unset.length > 0 && { $unset: Object.fromEntries(unset.map((path) => [path, ''])) }),
  };
}

/** Two updates of different paths as one. */
export function together(one: DocumentUpdate, other: DocumentUpdate): DocumentUpdate {
  const both = { ...one };
  for (const [operator, paths] of Object.entries(other)) both[operator] = { ...both[operator], ...paths };
  return both;
}
