import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import type { Exists, ReadFields, WriteTurn, WrittenStep } from '../../../platform/database/database.js';
import { OURS, ownTurn, takeTurns } from '../../../scheduler.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { isOfHook } from '../../hooks/before-calls.js';
import { notifyFollowers } from '../../changes/change-log.js';
import { relayLater } from '../../webhooks/outbox/queue-events.js';
import type { Action } from '../../webhooks/webhook-event.js';
import { untilDecided } from './ask-outside.js';
import type { StoredDocument } from './document.js';
import { explainWriteError, TRANSACTION_TOO_LARGE } from './explain-write-error.js';

/** The write of one document, a new one or a stored one, decided inside of its transaction. */
export interface DecidedWrite {
  collection: Collection;
  id: ObjectId;
  /** The event for followers and webhooks. */
  action: Action;
  /**
   * Answers what is stored from now on: null for nothing, the same object for no change. `stored` is null where there
   * is no document. Throws why the write is refused, or AskOutside. May run several times.
   */
  decide: (stored: StoredDocument | null, exists: Exists, read: ReadFields) => StoredDocument | null;
  /** Further writes that come right after it, and go with it. */
  also?: readonly DecidedWrite[];
  /** What is done here to a document that refers to another which went or came back. */
  cascaded?: string;
  /** Turns of the service's own that come after all of the writes. */
  follow?: readonly WriteTurn[];
  /** Throws why a document may not be stored in which own code has set something since it was decided about. */
  requireFilled?: (stored: StoredDocument | null, next: StoredDocument, exists: Exists, read: ReadFields) => void;
}

/** A document before and after its write; null where there was or is none. */
export interface Committed {
  before: StoredDocument | null;
  after: StoredDocument | null;
}

interface CommitOptions {
  /** A record of the service's own, stored in the same transaction before the documents. */
  first?: WriteTurn | undefined;
  /** The refusal of the write at a position. */
  naming?: (error: AppError, index: number) => unknown;
  /** Has the project's own code asked before. */
  ask?: AskAbout | undefined;
}

/** Puts something between the decisions about writes and the writes themselves. */
export type AskAbout = (writes: readonly DecidedWrite[]) => readonly DecidedWrite[];

/** As many documents as take less than a turn of the event loop. */
const FEW = 10;
/** What precedes and follows a transaction of many is done in turns of so much; it has one of its own. */
export const TOGETHER_MS = 2;

/**
 * Carries writes out in one transaction, in their order, each seeing those before it: all or none. Followers and
 * webhooks receive an event for each change. Throws the error of a rejected write.
 */
export async function commitWrites(
  app: App,
  writes: readonly DecidedWrite[],
  { first, naming = (error) => error, ask }: CommitOptions = {},
): Promise<Committed[]> {
  let at = -1;
  const asked = ask ? ask(writes) : writes;
  const all: DecidedWrite[] = [];
  const places = asked.map((write) => all.push(write, ...(write.also ?? [])) - 1 - (write.also?.length ?? 0));
  const decided = all.map(({ collection, id, decide }, index): WriteTurn => ({
    collection: documentsName(collection),
    id,
    run(stored, ...asking) {
      at = index;
      return decide(stored as StoredDocument | null, ...asking);
    },
  }));
  const follow = all.flatMap((write) => write.follow ?? []);
  const turns = [...(first ? [first] : []), ...decided, ...follow];
  const [only] = turns;
  const store = (): Promise<WrittenStep[]> =>
    turns.length === 1
      ? app.db
          .transform(only!.collection, only!.id, only!.run, writes[0]!.action === 'insert')
          .then((written) => [written])
      : app.db.transformTogether(turns);
  const isLarge = all.length > FEW;
  // What removes documents goes on when the disk is full.
  const makesRoom = writes.every(({ action }) => action === 'delete');
  let written: Committed[];
  try {
    if (isLarge) await ownTurn();
    written = (await untilDecided(() => (makesRoom ? app.db.useReserve(store) : store()))) as Committed[];
    if (isLarge) await ownTurn();
  } catch (error) {
    if (all.length > asked.length && (error as { code?: unknown }).code === TRANSACTION_TOO_LARGE) {
      // The job does the further ones.
      return commitWrites(
        app,
        asked.map((write) => ({ ...write, also: [] })),
        { first, naming },
      );
    }
    const explained = explainWriteError(error);
    const { step } = error as { step?: number };
    const index = places.findLastIndex((place) => place <= (step === undefined ? at : step - (first ? 1 : 0)));
    // Own code refuses all that it was asked about.
    const isNamed = explained instanceof AppError && index >= 0 && !isOfHook(explained);
    throw isNamed ? naming(explained, index) : explained;
  }
  if (first) written = written.slice(1);
  const turn = takeTurns(OURS, isLarge ? TOGETHER_MS : Infinity);
  if (follow.length > 0) app.jobs.wake();
  const committed = written.slice(0, all.length);
  for (const [index, { before, after }] of committed.entries()) {
    if (after === before) continue;
    await turn();
    const { collection, cascaded } = all[index]!;
    if (cascaded) app.metrics.event('cascaded_references', cascaded);
    notifyFollowers(app, collection);
    // What waits in a removed document was before it.
    relayLater(app, collection, (after ?? before)!, after ? before : null);
  }
  return places.map((place) => committed[place]!);
}
