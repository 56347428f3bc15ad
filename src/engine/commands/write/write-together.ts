import { CODES, refusal } from '../../errors.js';
import { EntryBudget } from '../../storage/keys/entry-budget.js';
import type { Storage } from '../../storage/storage.js';
import type { Query } from '../read/query.js';
import { openCollection } from './insert.js';
import { carryOutTurn, type Turn } from './transform.js';
import { findInside, LATER, modifyInside, type Modification, type Modified } from './modify.js';

/**
 * One step of several that are carried out together: a new document, the change of the one that matches, what is
 * decided about the one of an id, or a condition of all of them: that a document matches, or that none does.
 */
export type TogetherStep =
  ({ ns: string } & ({ insert: Buffer } | { modification: Modification })) | StepCondition | Turn;

export interface StepCondition {
  ns: string;
  query: Query;
  matches: boolean;
}

/**
 * A step was refused, or matched nothing, or something that it must not (`cause` is null then): none of the steps was
 * carried out.
 */
export class StepRefused extends Error {
  constructor(
    readonly step: number,
    override readonly cause: unknown,
  ) {
    super(`step ${step} of a batch was refused`);
  }
}

/**
 * Carries the steps out in their order in one transaction, each seeing those before it; all of them or, as a
 * StepRefused says, none. At most as many index entries of new documents as one insert may have.
 */
export async function writeTogether(storage: Storage, steps: readonly TogetherStep[]): Promise<Modified[]> {
  let at = 0;
  try {
    // A refusal after the first put undoes the transaction; what others have written in it is carried out again.
    return await storage.queue.write(() => {
      const budget = new EntryBudget();
      return steps.map((step, n) => {
        at = n;
        return carryOut(storage, step, budget);
      });
    });
  } catch (error) {
    throw new StepRefused(at, error === NOTHING_MATCHED ? null : error);
  }
}

/**
 * Stores all of the documents in one transaction if the conditions hold then, or none: an EngineError says why, a
 * StepRefused which condition does not hold.
 */
export function storeTogether(
  storage: Storage,
  ns: string,
  documents: readonly Buffer[],
  conditions: readonly StepCondition[],
): Promise<void> {
  return storage.queue.write(() => {
    // Nothing is put before everything is checked, so that a refusal does not undo what others write in this turn.
    const unmet = conditions.findIndex((condition) => !holds(storage, condition));
    if (unmet >= 0) throw new StepRefused(unmet, null);
    const collection = storage.catalog.find(ns);
    if (collection === null && documents.length === 0) return;
    storage.documents.insertTogether(collection ?? storage.catalog.create(ns), documents);
  });
}

function holds(storage: Storage, { ns, query, matches }: StepCondition): boolean {
  const collection = storage.catalog.find(ns);
  const found = collection && findInside(storage, collection, query);
  if (found === LATER) throw tooMany();
  return (found !== null) === matches;
}

const NOTHING_MATCHED = new Error('nothing matched');

function carryOut(storage: Storage, step: TogetherStep, budget: EntryBudget): Modified {
  if ('insert' in step) {
    storage.documents.insert(openCollection(storage, step.ns), step.insert, budget);
    return { before: null, after: step.insert, changed: true };
  }
  if ('query' in step) {
    if (!holds(storage, step)) throw NOTHING_MATCHED;
    return { before: null, after: null, changed: false };
  }
  if ('decide' in step) {
    carryOutTurn(storage, step, budget);
    return DECIDED;
  }
  const modified = modifyInside(storage, step.ns, step.modification);
  if (modified === LATER) throw tooMany();
  if (modified === null) throw NOTHING_MATCHED;
  return modified;
}

/** What came of a decision is told to its own listener. */
const DECIDED: Modified = { before: null, after: null, changed: true };

function tooMany(): Error {
  return refusal(CODES.MaxTimeMSExpired, 'a step of a batch has to look at too many documents');
}
