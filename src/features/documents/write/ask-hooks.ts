import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import type { Collection } from '../../collections/collection.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Caller } from '../../access/caller.js';
import { askBefore, type HookedCaller } from '../../hooks/before-calls.js';
import { HandlerFailure } from '../../hooks/call-handler.js';
import { findHook, type WriteEvent } from '../../hooks/hook.js';
import type { Action } from '../../webhooks/webhook-event.js';
import { AskOutside, type DecidedWrite } from '../store/commit-writes.js';
import { applyChange, readChange, type DocumentChange } from './change.js';
import type { StoredDocument } from '../store/document.js';
import type { WriteTarget } from './write-target.js';

/** How the request came that own code is asked about. */
interface Asking {
  /** It names one document, and not a list. */
  isOne: boolean;
  idempotencyKey?: string | null;
}

const EVENTS: Readonly<Partial<Record<Action, WriteEvent>>> = { insert: 'create', update: 'update', delete: 'delete' };

/** Top-level fields that own code may set. */
function hookFields({ fields }: Pick<Collection, 'fields'>): string[] {
  return fields.filter(({ hook }) => hook).map(({ name }) => name);
}

/** Whether own code may set a field in what is written there. */
export function isHookField({ collection, hooked }: Pick<WriteTarget, 'collection' | 'hooked'>, name: string): boolean {
  return hooked !== undefined && hookFields(collection).includes(name);
}

/** What was decided about one document before own code was asked. */
interface Decided {
  before: StoredDocument | null;
  next: StoredDocument | null;
}

/**
 * The writes with the project's own code between decision and write: once all are decided about as if they were carried
 * out, the transaction is given up, the hooks are called, and what they set is added when the decisions are made again.
 * So no lock lasts as long as a call, and a document that changed in that time is checked again without another call.
 */
export function askHooks(
  app: App,
  caller: HookedCaller,
  writes: readonly DecidedWrite[],
  asking: Asking,
): readonly DecidedWrite[] {
  if (!caller || !writes.some((write) => findHook(caller.project, eventOf(write)))) return writes;
  const decided: Decided[] = [];
  let changes: (DocumentChange | null)[] | null = null;
  return writes.map((write, at) => ({
    ...write,
    decide(stored, exists, read) {
      if (changes) {
        const change = changes[at];
        return write.decide(stored, exists, read, change ? (next) => applyChange(change, next) : undefined);
      }
      const next = write.decide(stored, exists, read);
      decided[at] = { before: stored, next };
      if (at < writes.length - 1) return next;
      throw new AskOutside(async () => {
        changes = await askEach(app, writes, decided, caller, asking);
      });
    },
  }));
}

function eventOf({ collection, action }: DecidedWrite): string {
  return `${collection.name}.${EVENTS[action] ?? ''}`;
}

/** One call for each event, with all of its documents. */
async function askEach(
  app: App,
  writes: readonly DecidedWrite[],
  decided: readonly Decided[],
  caller: Caller,
  { isOne, idempotencyKey }: Asking,
): Promise<(DocumentChange | null)[]> {
  const changes = Array<DocumentChange | null>(writes.length).fill(null);
  const places = new Map<string, number[]>();
  for (const [at, { before, next }] of decided.entries()) {
    if (next === before) continue;
    const event = eventOf(writes[at]!);
    places.set(event, [...(places.get(event) ?? []), at]);
  }
  for (const [event, at] of places) {
    const asked = at.map((index) => show(writes[index]!, decided[index]!));
    const take = (set: Record<string, unknown>, of: number): DocumentChange | null =>
      readSet(writes[at[of]!]!, decided[at[of]!]!.next!, set, app.clock.now());
    const answers = await askBefore(app, caller, { event, asked, isOne, idempotencyKey, take });
    for (const [of, change] of (answers ?? []).entries()) changes[at[of]!] = change;
  }
  return changes;
}

function show({ id, action }: DecidedWrite, { before, next }: Decided) {
  const isGone = action === 'delete';
  return {
    id: id.toHexString(),
    document: withoutNotes((isGone ? before : next)!),
    ...(!isGone && before && { before: withoutNotes(before) }),
  };
}

function withoutNotes({ [HIDDEN_FIELD]: _, ...shown }: StoredDocument): Record<string, unknown> {
  return shown;
}

/** What own code sets as a change of the document; HandlerFailure for what it may not set, or does not fit. */
export function readSet(
  { collection, id, action }: Pick<DecidedWrite, 'collection' | 'id' | 'action'>,
  next: Record<string, unknown>,
  set: Record<string, unknown>,
  now: number,
): DocumentChange | null {
  const names = Object.keys(set);
  if (names.length === 0) return null;
  if (action === 'delete') throw new HandlerFailure('"set" has no place where a document is removed.');
  const allowed = hookFields(collection);
  const foreign = names.find((name) => !allowed.includes(name));
  if (foreign !== undefined) {
    throw new HandlerFailure(`"set" names ${foreign.slice(0, 100)}, which is not declared @hook.`);
  }
  try {
    const change = readChange(collection, id, set, { now, takesOperators: false });
    applyChange(change, next);
    return change;
  } catch (error) {
    throw error instanceof AppError ? new HandlerFailure(`"set" does not fit: ${error.message}`) : error;
  }
}
