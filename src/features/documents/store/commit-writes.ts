import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import type { Exists, ReadFields, WriteTurn, WrittenStep } from '../../../platform/database/database.js';
import { OURS, ownTurn, takeTurns } from '../../../turns.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { isOfHook } from '../../hooks/before-calls.js';
import type { Action } from '../../webhooks/webhook-event.js';
import { untilDecided } from './ask-outside.js';
import type { StoredDocument } from './document.js';
import { explainWriteError } from './refused-writes.js';
import { tellOf } from './tell-of.js';

/** The write of one document, decided inside of its transaction. */
export interface DecidedWrite {
  collection: Collection;
  id: ObjectId;
  /** What followers and webhooks are told. */
  action: Action;
  /**
   * Answers what is stored from now on: null for nothing, the same object for no change. `stored` is null where there
   * is no document. Throws why the write is refused, or AskOutside. May run several times.
   */
  decide: (stored: StoredDocument | null, exists: Exists, read: ReadFields) => StoredDocument | null;
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
 * webhooks are told of each that changed something. Throws why a write is refused.
 */
export async function commitWrites(
  app: App,
  writes: readonly DecidedWrite[],
  { first, naming = (error) => error, ask }: CommitOptions = {},
): Promise<Committed[]> {
  let at = -1;
  const asked = ask ? ask(writes) : writes;
  const decided = asked.map(({ collection, id, decide }, index): WriteTurn => ({
    collection: documentsName(collection),
    id,
    run(stored, ...asking) {
      at = index;
      return decide(stored as StoredDocument | null, ...asking);
    },
  }));
  const follow = writes.flatMap((write) => write.follow ?? []);
  const turns = [...(first ? [first] : []), ...decided, ...follow];
  const [only] = turns;
  const store = (): Promise<WrittenStep[]> =>
    turns.length === 1
      ? app.db
          .transform(only!.collection, only!.id, only!.run, writes[0]!.action === 'insert')
          .then((written) => [written])
      : app.db.transformTogether(turns);
  const isLarge = writes.length > FEW;
  // What removes documents goes on when the disk is full.
  const makesRoom = writes.every(({ action }) => action === 'delete');
  let written: Committed[];
  try {
    if (isLarge) await ownTurn();
    written = (await untilDecided(() => (makesRoom ? app.db.useReserve(store) : store()))) as Committed[];
    if (isLarge) await ownTurn();
  } catch (error) {
    const explained = explainWriteError(error);
    const { step } = error as { step?: number };
    const index = step === undefined ? at : step - (first ? 1 : 0);
    // Own code refuses all that it was asked about.
    const isNamed = explained instanceof AppError && index >= 0 && !isOfHook(explained);
    throw isNamed ? naming(explained, index) : explained;
  }
  if (first) written = written.slice(1);
  const turn = takeTurns(OURS, isLarge ? TOGETHER_MS : Infinity);
  if (follow.length > 0) app.jobs.wake();
  const committed = written.slice(0, writes.length);
  for (const [index, { before, after }] of committed.entries()) {
    if (after === before) continue;
    await turn();
    const { collection, action } = writes[index]!;
    // What waits in a removed document was before it.
    await tellOf(app, collection, action, { documents: [(after ?? before)!], ...(before && after && { before }) });
  }
  return committed;
}
