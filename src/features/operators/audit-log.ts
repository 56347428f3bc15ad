import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import type { Store } from '../../platform/database.js';

/** An administrative act as recorded: who did what with which words, and how it ended. Never a secret. */
export interface Act {
  _id: ObjectId;
  at: Date;
  /** `ada@host` for the command line. */
  actor: string;
  /** The words of the command, for example `project update`. */
  action: string;
  /** Arguments and options by name, without secrets. */
  input: Record<string, unknown>;
  /** `started` stays only when the process died before the end. */
  outcome: 'started' | 'done' | 'failed';
  /** Code of the error of a failed act. */
  code: string | null;
}

export type NewAct = Pick<Act, 'actor' | 'action' | 'input'>;

export const AUDIT_LOG = 'audit_log';

const MAX_TEXT = 500;
const MAX_ITEMS = 50;

const auditStore = (app: Pick<App, 'db'>): Store<Act> => app.db.collection<Act>(AUDIT_LOG);

/** Records an act before it is carried out, so that one that dies in the middle leaves a trace. */
export async function startAct(app: App, { actor, action, input }: NewAct): Promise<Act> {
  const act: Act = {
    _id: new ObjectId(),
    at: new Date(app.clock.now()),
    actor,
    action,
    input: shorten(input) as Act['input'],
    outcome: 'started',
    code: null,
  };
  await auditStore(app).insertOne(act);
  return act;
}

/** Notes how an act ended and with which input in the end; `code` is the error's, null for success. Written whole, as a restore replaces the log. */
export async function finishAct(app: App, act: Act, end: { code: string | null; input: Act['input'] }): Promise<void> {
  const { _id, ...begun } = act;
  const outcome = end.code === null ? 'done' : 'failed';
  const ended = { ...begun, outcome, code: end.code, input: shorten(end.input) as Act['input'] } as const;
  await auditStore(app).replaceOne({ _id }, ended, { upsert: true });
}

/** The newest acts first; `since` in milliseconds since 1970. */
export function listActs(app: App, options: { limit: number; since?: number; action?: string }): Promise<Act[]> {
  const filter = {
    ...(options.since !== undefined && { at: { $gte: new Date(options.since) } }),
    ...(options.action !== undefined && { action: options.action }),
  };
  return auditStore(app).find(filter).sort({ at: -1, _id: -1 }).limit(options.limit).toArray() as Promise<Act[]>;
}

/** Long inputs are cut, so that an act stays small; keys that a database would misread cannot occur, as they are our own option names. */
function shorten(value: unknown): unknown {
  if (typeof value === 'string') return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value;
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map(shorten);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shorten(inner)]));
}
